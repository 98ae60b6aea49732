//! The program, run as a program: what it prints, and the code it ends with.

mod demo;
mod failures;
mod manifests;
mod new;
mod readme;
mod serve;
mod support;
mod table;
