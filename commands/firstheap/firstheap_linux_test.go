package firstheap

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"unsafe"
)

// TestHeapKeepsItsContents collapses the region and compares what lies in it.
func TestHeapKeepsItsContents(t *testing.T) {
	kept := make([][]byte, 64)
	for i := range kept {
		kept[i] = []byte(strings.Repeat(fmt.Sprint(i), 1000))
	}
	if err := collapse(); err != nil {
		t.Skipf("the system gave no huge page: %v", err)
	}
	for i := range kept {
		if string(kept[i]) != strings.Repeat(fmt.Sprint(i), 1000) {
			t.Fatalf("object %d changed", i)
		}
	}
	if kb := hugeKilobytes(t, uintptr(unsafe.Pointer(marker))); kb < hugePage>>10 {
		t.Errorf("the mapping around %p has %d kB in huge pages", marker, kb)
	}
}

// hugeKilobytes returns AnonHugePages of the mapping that holds an address.
func hugeKilobytes(t *testing.T, at uintptr) int {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	inside := false
	for s := bufio.NewScanner(f); s.Scan(); {
		var low, high uintptr
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x", &low, &high); n == 2 {
			inside = low <= at && at < high
			continue
		}
		var kb int
		if n, _ := fmt.Sscanf(s.Text(), "AnonHugePages: %d kB", &kb); n == 1 && inside {
			return kb
		}
	}
	return 0
}

func TestRunning(t *testing.T) {
	for text, want := range map[string]int{
		"0.00 0.01 0.05 1/123 4567\n": 1, "3.00 2.01 1.05 12/123 4567\n": 12, "": math.MaxInt, "0.00 0.01 0.05": math.MaxInt, "0.00 0.01 0.05 1": math.MaxInt, "0 0 0 x/1": math.MaxInt,
	} {
		if got := running([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
