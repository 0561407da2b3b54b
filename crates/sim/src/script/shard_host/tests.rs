mod calls;
mod peer;
mod rules;
mod time;
