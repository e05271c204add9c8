package pkgmgr

import (
	"encoding/binary"
	"io"
	"os"
	"path"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/schemas/shebang"
)

// executableHead is what the first bytes of an executable say.
type executableHead struct {
	Platform    string // "os/arch"; lockfile.Any for a script; "" when it cannot be told
	Interpreter string // of a script: what follows "#!"
	Fault       error  // of a script: why its first line cannot be used
}

// readHead reads the head of a package's executable.
func readHead(root *os.Root, exe string) (executableHead, error) {
	f, err := root.Open(path.Clean(exe))
	if err != nil {
		return executableHead{}, err
	}
	defer f.Close()
	head := make([]byte, 1024)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return executableHead{}, err
	}
	return parseHead(head[:n]), nil
}

func parseHead(b []byte) executableHead {
	if line, ok, err := shebang.Parse(b[:min(len(b), shebang.Head)]); ok {
		return executableHead{Platform: lockfile.Any, Interpreter: line.Command, Fault: err}
	}
	switch {
	case len(b) >= 20 && string(b[:4]) == "\x7fELF":
		return executableHead{Platform: elfPlatform(b)}
	case len(b) >= 8 && binary.LittleEndian.Uint32(b) == 0xfeedfacf:
		return executableHead{Platform: machOPlatform(binary.LittleEndian.Uint32(b[4:]))}
	case len(b) >= 64 && string(b[:2]) == "MZ":
		return executableHead{Platform: pePlatform(b)}
	}
	return executableHead{}
}

func join(os, arch string) string {
	if os == "" || arch == "" {
		return ""
	}
	return os + "/" + arch
}

func machOPlatform(cpu uint32) string {
	switch cpu {
	case 0x01000007:
		return "darwin/amd64"
	case 0x0100000c:
		return "darwin/arm64"
	}
	return ""
}

// elfPlatform reads e_machine and the ABI byte; 0 (System V) and 3 mean Linux here.
func elfPlatform(b []byte) string {
	var order binary.ByteOrder = binary.LittleEndian
	if b[5] == 2 {
		order = binary.BigEndian
	}
	system := map[byte]string{0: "linux", 3: "linux", 9: "freebsd", 12: "openbsd", 2: "netbsd"}[b[7]]
	arch := ""
	switch order.Uint16(b[18:]) {
	case 62:
		arch = "amd64"
	case 183:
		arch = "arm64"
	case 3:
		arch = "386"
	case 40:
		arch = "arm"
	case 243:
		arch = "riscv64"
	case 22:
		arch = "s390x"
	case 21:
		arch = "ppc64"
		if b[5] == 1 {
			arch = "ppc64le"
		}
	case 258:
		arch = "loong64"
	}
	return join(system, arch)
}

func pePlatform(b []byte) string {
	at := int(binary.LittleEndian.Uint32(b[60:]))
	if at < 0 || at+6 > len(b) || string(b[at:at+4]) != "PE\x00\x00" {
		return ""
	}
	arch := map[uint16]string{0x8664: "amd64", 0xaa64: "arm64", 0x14c: "386"}[binary.LittleEndian.Uint16(b[at+4:])]
	return join("windows", arch)
}
