package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// python compares one operation of a fresh Python process with the SDK with a child
// written by hand, which imports asyncio and json, exchanges the same frames and checks
// nothing. sdk/python/bench/oneshot.py has both.
func (w *world) python(runs int) (pair, error) {
	p := pair{runs: runs * 4, limit: 1.3, ourUse: "one operation of a fresh Python process, with the SDK", vs: "hand-written child with asyncio and json, same frames"}
	interpreter, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(interpreter, "-c", "import sys; sys.exit(sys.version_info < (3, 11))").Run()
	}
	if err != nil {
		p.skip = "no python3 of version 3.11 or newer"
		return p, nil
	}
	dir := filepath.Join(w.dir, "python")
	if out, err := exec.Command(interpreter, "../../sdk/python/bench/oneshot.py", "--prepare", dir).CombinedOutput(); err != nil {
		return p, fmt.Errorf("oneshot.py --prepare: %w\n%s", err, out)
	}
	frames, err := readFrames(filepath.Join(dir, "frames"))
	if err != nil {
		return p, err
	}
	p.ours, p.other = w.oneShot(interpreter, dir, "sdk.py", frames), w.oneShot(interpreter, dir, "hand.py", frames)
	return p, nil
}

// readFrames reads what the host says.
func readFrames(path string) (frames [][]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for r := wire.NewFrameReader(f); ; {
		frame, err := r.Next(nil)
		if err == io.EOF {
			return frames, nil
		}
		if err != nil {
			return nil, err
		}
		frames = append(frames, frame)
	}
}

// oneShot is one process of a script from its start to its end, with its operation.
func (w *world) oneShot(interpreter, dir, script string, frames [][]byte) func() error {
	return func() error {
		cmd := exec.Command(interpreter, "-I", "-B", filepath.Join(dir, script))
		cmd.Dir = filepath.Join(dir, "package")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "SWITCHYARD_PLUGIN_PROTOCOL=session/1", "SWITCHYARD_PLUGIN_STATE=" + dir, "PYTHONDONTWRITEBYTECODE=1"}
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		if err := converse(in, wire.NewFrameReader(out), frames); err != nil {
			cmd.Process.Kill()
			cmd.Wait()
			return fmt.Errorf("%s: %w", script, err)
		}
		return cmd.Wait()
	}
}

// converse exchanges the frames: hello, init, one request, and a goAway that is not
// answered.
func converse(in io.WriteCloser, out *wire.FrameReader, frames [][]byte) error {
	for i, answer := range []wire.MessageType{wire.TypeHelloAck, wire.TypeInitAck, wire.TypeResponse, ""} {
		if err := wire.WriteFrame(in, frames[i], wire.DefaultMaxFrame); err != nil {
			return err
		}
		if answer == "" {
			break
		}
		frame, err := out.Next(nil)
		if err != nil {
			return err
		}
		var e wire.Envelope
		if err := wire.Scan(frame, &e); err != nil {
			return err
		}
		if e.Type != answer {
			return fmt.Errorf("%s came where %s is due: %s", e.Type, answer, frame)
		}
	}
	return in.Close()
}
