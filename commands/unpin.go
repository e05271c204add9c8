package commands

import "github.com/urfave/cli/v2"

type unpinData struct {
	Lock     string   `json:"lock" doc:"The lockfile that was written."`
	Unpinned []string `json:"unpinned" doc:"The ids whose entries were removed."`
}

func unpinCommand(in *invocation) *cli.Command {
	return &cli.Command{
		ArgsUsage:   "NAME...",
		Description: "Removes plugins from this project's switchyard.lock. What is installed stays.",
		UsageText:   "switchyard unpin repo-facts",
		Action: func(c *cli.Context) error {
			args, err := in.arguments(c, 1, -1)
			if err != nil {
				return err
			}
			var ids []string
			for _, a := range args {
				ref, err := in.ref(a)
				if err != nil {
					return err
				}
				ids = append(ids, ref.ID)
			}
			h, err := in.home()
			if err != nil {
				return err
			}
			if _, err := in.lockHere(); err != nil {
				return err
			}
			p, err := in.projectHere(projectMustExist)
			if err != nil {
				return err
			}
			if err := h.Unpin(p, ids); err != nil {
				return err
			}
			data := unpinData{p.LockPath(), ids}
			in.report(data, func(page *page) {
				for _, id := range ids {
					page.line("Unpinned %s in %s", id, data.Lock)
				}
			})
			return nil
		},
	}
}
