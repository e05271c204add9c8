package process

// MarkVariable is the environment variable that holds the call's id in a child
// and, unless it is cleared, in every descendant. On Linux a second mark backs
// it: the soft RLIMIT_LOCKS, which the kernel has not enforced since 2.4, which
// every descendant inherits and which clearing the environment does not change.
const MarkVariable = "SWITCHYARD_PLUGIN_CALL"
