package commands

import "github.com/urfave/cli/v2"

// An entry is one command: its name as typed (one or two words), where help
// lists it, one line about it, and how to build it. data is a value of the type
// that --json prints, for the published schema; nil for a command that prints
// none.
type entry struct {
	name    string
	group   group
	summary string
	build   func(*invocation) *cli.Command
	data    any
}

type group string

const (
	groupAuthor  group = "Write and pack plugins"
	groupPackage group = "Install and look"
	groupDecide  group = "Review and decide"
	groupLock    group = "Pin and reproduce"
	groupRun     group = "Run and follow"
	groupTool    group = "This tool"
)

// groups is the order of the overview.
func groups() []group {
	return []group{groupAuthor, groupPackage, groupDecide, groupLock, groupRun, groupTool}
}

// table lists every command. It is a function so that nothing is built before it
// is asked for.
func table() []entry {
	return []entry{
		{"init", groupAuthor, "begin a working, tested plugin project", initCommand, initData{}},
		{"check", groupAuthor, "say what install would reject", checkCommand, checkData{}},
		{"dev", groupAuthor, "call a plugin from its directory while you write it", devCommand, runData{}},
		{"conformance", groupAuthor, "test whether a program is a plugin", conformanceCommand, conformanceData{}},
		{"conformance list", groupAuthor, "list the cases of the conformance corpus", conformanceListCommand, conformanceListData{}},
		{"conformance show", groupAuthor, "print a case of the conformance corpus", conformanceShowCommand, conformanceShowData{}},
		{"pack", groupAuthor, "write a directory as a deterministic archive", packCommand, packData{}},
		{"sbom", groupAuthor, "print what is in a package as an SPDX document", sbomCommand, sbomData{}},
		{"keygen", groupAuthor, "make a key pair to sign with", keygenCommand, keygenData{}},
		{"sign", groupAuthor, "sign an archive: a Sigstore bundle beside it", signCommand, signData{}},

		{"install", groupPackage, "install packages, or what the project asks for", installCommand, installData{}},
		{"use", groupPackage, "make an installed version the default", useCommand, useData{}},
		{"uninstall", groupPackage, "remove a plugin or one version", uninstallCommand, uninstallData{}},
		{"gc", groupPackage, "remove from the store what nothing refers to", gcCommand, gcData{}},
		{"list", groupPackage, "list installed plugins and where each stands", listCommand, listData{}},
		{"show", groupPackage, "show what is known about a plugin", showCommand, showData{}},
		{"verify", groupPackage, "hash packages again and check them", verifyCommand, verifyData{}},

		{"review", groupDecide, "show what to know before trusting a package", reviewCommand, reviewData{}},
		{"approve", groupDecide, "review, trust and enable, asking on a terminal", approveCommand, enableData{}},
		{"trust", groupDecide, "record that a package was reviewed", trustCommand, trustData{}},
		{"enable", groupDecide, "grant scopes to a trusted plugin", enableCommand, enableData{}},
		{"disable", groupDecide, "revoke every grant, keep the review", disableCommand, withdrawData{}},
		{"untrust", groupDecide, "forget the review and every grant", untrustCommand, withdrawData{}},
		{"revoke", groupDecide, "deny a package, whatever else says yes", revokeCommand, revokeData{}},
		{"unrevoke", groupDecide, "lift a revocation", unrevokeCommand, unrevokeData{}},
		{"revocations list", groupDecide, "list the signed revocation lists in force", revocationsListCommand, revocationsListData{}},
		{"revocations affected", groupDecide, "list what revocation lists name of what is or was here", revocationsAffectedCommand, revocationsAffectedData{}},
		{"revocations update", groupDecide, "adopt an issuer's signed revocation list", revocationsUpdateCommand, revocationsUpdateData{}},
		{"revocations dissent", groupDecide, "not follow a list's block of one digest for a time", revocationsDissentCommand, revocationsDissentData{}},
		{"revocations create", groupDecide, "begin an issuer's revocation lists", revocationsCreateCommand, revocationsCreateData{}},
		{"revocations add", groupDecide, "add an entry to a revocation list", revocationsAddCommand, revocationsAddData{}},
		{"revocations remove", groupDecide, "take an entry out of a revocation list", revocationsRemoveCommand, revocationsRemoveData{}},
		{"revocations renew", groupDecide, "issue a revocation list again before it expires", revocationsRenewCommand, revocationsRenewData{}},
		{"revocations sign", groupDecide, "sign a revocation list or its root", revocationsSignCommand, revocationsSignData{}},
		{"revocations rotate", groupDecide, "write the next root of an issuer's revocation lists", revocationsRotateCommand, revocationsRotateData{}},
		{"trusted-root show", groupDecide, "say whose signatures under certificates count", trustedRootShowCommand, trustedRootShowData{}},
		{"trusted-root update", groupDecide, "fetch the trusted root that a TUF repository names now", trustedRootUpdateCommand, trustedRootUpdateData{}},
		{"policy explain", groupDecide, "say rule by rule how a package stands under your policy", policyExplainCommand, explainData{}},
		{"project trust", groupDecide, "let plugins be called on a project", projectTrustCommand, projectTrustData{}},
		{"project untrust", groupDecide, "take that back", projectUntrustCommand, projectUntrustData{}},
		{"project list", groupDecide, "list trusted projects", projectListCommand, projectListData{}},

		{"pin", groupLock, "write a reviewed plugin into the lock", pinCommand, pinData{}},
		{"unpin", groupLock, "remove a plugin from the lock", unpinCommand, unpinData{}},
		{"lock", groupLock, "bring the lock up to date, check or merge it", lockCommand, lockData{}},
		{"ci", groupLock, "install exactly what the lock says", ciCommand, ciData{}},

		{"run", groupRun, "call a plugin once", runCommand, runData{}},
		{"actions", groupRun, "list the actions a plugin offers", actionsCommand, actionsData{}},
		{"operations list", groupRun, "list recorded operations", operationsListCommand, operationsListData{}},
		{"operations show", groupRun, "show an operation and its result", operationsShowCommand, operationsShowData{}},
		{"operations cancel", groupRun, "ask a running operation to stop", operationsCancelCommand, operationsCancelData{}},
		{"receipts list", groupRun, "list the receipts of sessions' operations", receiptsListCommand, receiptsListData{}},
		{"receipts show", groupRun, "show a receipt, or print it signed", receiptsShowCommand, receiptsShowData{}},
		{"receipts verify", groupRun, "verify a signed receipt with a public key", receiptsVerifyCommand, receiptsVerifyData{}},
		{"config list", groupRun, "show what is set for a session plugin", configListCommand, settingsData{}},
		{"config get", groupRun, "print one setting", configGetCommand, configGetData{}},
		{"config set", groupRun, "set one of a session plugin's settings", configSetCommand, configSetData{}},
		{"config unset", groupRun, "take a setting away, or all of them", configUnsetCommand, configUnsetData{}},
		{"secrets list", groupRun, "list the secrets that settings refer to", secretsListCommand, secretsListData{}},
		{"secrets set", groupRun, "keep a secret for a session plugin", secretsSetCommand, configSetData{}},
		{"secrets unset", groupRun, "forget a secret, or all of a plugin", secretsUnsetCommand, secretsUnsetData{}},
		{"logs", groupRun, "show what a plugin wrote to standard error", logsCommand, logsData{}},
		{"history", groupRun, "show what happened", historyCommand, historyData{}},

		{"doctor", groupTool, "look for what is wrong here, and mend it", doctorCommand, doctorData{}},
		{"env", groupTool, "print the settings in force", envCommand, envData{}},
		{"version", groupTool, "print the version of this program", versionCommand, versionData{}},
		{"completion", groupTool, "print the completion script of a shell", completionCommand, completionData{}},
		{"help", groupTool, "explain a command", helpCommand, helpData{}},
	}
}

// find returns the entry of a command, or nil.
func find(name string) *entry {
	entries := table()
	for i := range entries {
		if entries[i].name == name {
			return &entries[i]
		}
	}
	return nil
}

// family returns the second words of the commands that begin with word, as
// "list" and "show" for "operations"; empty where word begins none.
func family(word string) []string {
	var seconds []string
	for _, e := range table() {
		if first, second, ok := cutSpace(e.name); ok && first == word {
			seconds = append(seconds, second)
		}
	}
	return seconds
}

func cutSpace(name string) (first, second string, ok bool) {
	for i := range len(name) {
		if name[i] == ' ' {
			return name[:i], name[i+1:], true
		}
	}
	return name, "", false
}
