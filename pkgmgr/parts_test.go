package pkgmgr

import (
	"errors"
	"fmt"
)

// partEnv names the part that the re-executed test binary plays.
const partEnv = "PKGMGR_TEST_PART"

func errorsAs(err error, target any) bool { return errors.As(err, target) }

// play performs a part in a process of its own.
func play(part string, args []string) error {
	return fmt.Errorf("unknown part %q", part)
}
