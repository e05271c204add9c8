package misbehave

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tree starts a process that outlives the plugin before it answers a method.
//
//	hold     keeps the plugin's stdout and stderr open
//	setpgid  in a process group of its own
//	setsid   in a session of its own
//	double   forked twice: its parent is dead when the plugin answers
//	clear    with an empty environment
//	unlimit  with every limit raised
//	ignore   ignores every signal it can
//	stop     stopped
func tree(how ...string) behaviour {
	return behaviour{method: func(p *plugin, a answer) {
		p.daemon(how...)
		say(a.line())
	}}
}

// daemon starts a leaf as how says and returns when it runs.
func (p *plugin) daemon(how ...string) {
	if slices.Contains(how, "double") {
		p.spawn("helper-middle", how...)
	} else {
		p.spawn("helper-leaf", how...)
	}
}

// spawn re-executes this program as a helper and waits until the helper, or
// what it starts in turn, has closed its end of the readiness pipe.
func (p *plugin) spawn(helper string, args ...string) {
	ready, child, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	cmd := p.command(helper, args...)
	cmd.ExtraFiles = []*os.File{child}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	child.Close()
	io.Copy(io.Discard, ready)
	ready.Close()
	if helper == "helper-middle" {
		cmd.Wait()
	}
}

func (p *plugin) command(helper string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self, Args(helper, "how="+strings.Join(args, ","), "pids="+p.options["pids"], "ready="+p.options["ready"])...)
	if slices.Contains(args, "hold") {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	if slices.Contains(args, "clear") {
		cmd.Env = []string{}
	}
	detach(cmd, slices.Contains(args, "setsid"), slices.Contains(args, "setpgid"))
	return cmd
}

// ready closes the readiness pipe, which every helper has as descriptor 3.
func ready() { os.NewFile(3, "ready").Close() }

// middle starts the leaf, hands it the readiness pipe and ends.
func middle(p *plugin) {
	cmd := p.command("helper-leaf", strings.Split(p.options["how"], ",")...)
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "ready")}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// leaf records its pid and stays.
func leaf(p *plugin) {
	how := strings.Split(p.options["how"], ",")
	if slices.Contains(how, "ignore") {
		ignoreSignals()
	}
	if slices.Contains(how, "unlimit") {
		raiseLimits()
		// Beside other calls nobody can tell whose it is: it ends by itself.
		time.AfterFunc(20*time.Second, func() { exit(0) })
	}
	p.record()
	ready()
	if slices.Contains(how, "stop") {
		stopSelf()
	}
	hang()
}

// bomb starts two of its kind, each in a session of its own, until the given
// depth, and stays: 2^(depth+1)-1 processes. The readiness pipe goes down the
// tree, so that the plugin answers when all of them run.
func bomb(p *plugin) {
	depth, _ := strconv.Atoi(strings.Split(p.options["how"], ",")[0])
	p.record()
	pipe := os.NewFile(3, "ready")
	if depth > 0 {
		for range 2 {
			cmd := p.command("helper-bomb", strconv.Itoa(depth-1), "setsid")
			cmd.ExtraFiles = []*os.File{pipe}
			if err := cmd.Start(); err != nil {
				panic(err)
			}
		}
	}
	pipe.Close()
	hang()
}

// chain starts one of its kind in a session of its own and ends at once, up to
// the given length, so that the pid to be killed is always another.
func chain(p *plugin) {
	length, _ := strconv.Atoi(strings.Split(p.options["how"], ",")[0])
	p.record()
	ready()
	if length == 0 {
		hang()
	}
	cmd := p.command("helper-chain", strconv.Itoa(length-1), "setsid")
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// record adds this process's pid to the file that the test reads, and tells the
// named pipe on which the test waits.
func (p *plugin) record() {
	append := func(path, text string) {
		if path == "" {
			return
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		fmt.Fprint(f, text)
	}
	append(p.options["pids"], strconv.Itoa(os.Getpid())+"\n")
	append(p.options["ready"], "x")
}
