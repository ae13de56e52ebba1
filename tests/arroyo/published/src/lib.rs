//! Plugins on the published crates, each in a file of `plugins/`: what Arroyo's users have.
