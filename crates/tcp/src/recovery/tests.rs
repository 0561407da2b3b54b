//! Recovery against a flight, acknowledgment by acknowledgment.
