//go:build !unix

package conformance

import (
	"errors"
	"os"
	"time"
)

var errNoSocket = errors.New("this system has no Unix sockets here")

func listen(string) (*os.File, error) { return nil, errNoSocket }

func accept(*os.File, time.Duration) (*os.File, error) { return nil, errNoSocket }

type halfClose struct{ *os.File }
