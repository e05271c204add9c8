package process

import "fmt"

// A SurvivorError names processes of a dead call that could not be ended.
type SurvivorError struct{ PIDs []int }

func (e *SurvivorError) Error() string {
	return fmt.Sprintf("processes that could not be ended: %v", e.PIDs)
}
