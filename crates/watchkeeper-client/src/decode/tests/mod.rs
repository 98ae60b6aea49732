//! Decoding of watch frames, list bodies and single objects. No sockets and no clock.

mod frames;
mod gunzip;
mod list;
mod object;
mod properties;
