//! TIME-WAIT: how records begin, what segments do to them, how they end.

use whimbrel_tcp::table::{Kind, Record, TimeWait, WaitVerdict};
use whimbrel_tcp::{Reply, Verdict};

use super::Shard;
use crate::ip::{Arrival, FlowKey};
