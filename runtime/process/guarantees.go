package process

// A Guarantee is something about supervision that depends on the running
// kernel, with what its absence means for the user.
type Guarantee struct {
	Name   string // stable, as "parent-death-signal"
	Holds  bool
	Detail string // what holds, or what does not
}
