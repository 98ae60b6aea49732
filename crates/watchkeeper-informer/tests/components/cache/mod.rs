//! The cache and what reads from it: keys, store, indexes, listers, small stores.

mod index;
mod keys;
mod lister;
mod objects;
mod small_stores;
mod store;
mod store_model;
mod store_readers;
