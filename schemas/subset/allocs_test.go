//go:build !race

package subset_test

import "testing"

// A validation that finds nothing allocates nothing. The race detector makes pools
// forget, so this is not built with it.
func TestAllocations(t *testing.T) {
	s := compiled(t, orderSchema)
	value := []byte(order)
	if n := testing.AllocsPerRun(200, func() {
		if s.Validate(value) != nil {
			t.Fatal("refused")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
