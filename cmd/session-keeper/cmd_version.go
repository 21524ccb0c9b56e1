package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version overrides what the build information says, for builds from a
// tarball: go build -ldflags "-X main.version=v1.2.3".
var version string

// versionInfo is the output of "version --json".
type versionInfo struct {
	Version  string `json:"version"`            // a tag, a pseudo-version, or "(devel)"
	Revision string `json:"revision,omitempty"` // the commit, when built from a checkout
	Time     string `json:"time,omitempty"`     // the commit's time, RFC 3339
	Modified bool   `json:"modified,omitempty"` // built with uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (v versionInfo) String() string {
	return fmt.Sprintf("%s %s %s %s", programName, v.Version, v.Go, v.Platform)
}

func buildVersion() versionInfo {
	info := versionInfo{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if build, ok := debug.ReadBuildInfo(); ok {
		if build.Main.Version != "" {
			info.Version = build.Main.Version
		}
		for _, s := range build.Settings {
			switch s.Key {
			case "vcs.revision":
				info.Revision = s.Value
			case "vcs.time":
				info.Time = s.Value
			case "vcs.modified":
				info.Modified = s.Value == "true"
			}
		}
	}
	if version != "" {
		info.Version = version
	}
	return info
}

func newVersionCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version [--json]",
		Short: "Print the version",
		Long: `Print the version of this command, and what it was built from.

Exit codes: 0.`,
		Example: `  session-keeper version
  session-keeper version --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := buildVersion()
			if asJSON {
				return writeJSON(a.out, info)
			}
			return a.printf("%s\n", info)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object: version, revision, time, modified, go, platform")
	return cmd
}
