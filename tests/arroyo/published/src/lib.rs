//! Plugins on the published crates, as Arroyo's users write them; each in a file of `plugins/`.
