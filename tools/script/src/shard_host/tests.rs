mod calls;
mod peer;
mod profiles;
mod rules;
mod time;
