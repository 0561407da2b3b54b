//! Two hosts and the links between them, in virtual time.

mod churn;
mod datagrams;
