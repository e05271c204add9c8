package main

// languageOf returns the language that a file name stands for, or "".
func languageOf(name string) string {
	switch name {
	case "Makefile", "GNUmakefile", "makefile":
		return "Makefile"
	case "Dockerfile", "Containerfile":
		return "Dockerfile"
	case "CMakeLists.txt":
		return "CMake"
	case "Rakefile", "Gemfile":
		return "Ruby"
	case "Jenkinsfile":
		return "Groovy"
	}
	switch extension(name) {
	case ".go":
		return "Go"
	case ".py", ".pyi":
		return "Python"
	case ".js", ".mjs", ".cjs", ".jsx":
		return "JavaScript"
	case ".ts", ".mts", ".cts", ".tsx":
		return "TypeScript"
	case ".c", ".h":
		return "C"
	case ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx":
		return "C++"
	case ".cs":
		return "C#"
	case ".fs", ".fsx":
		return "F#"
	case ".java":
		return "Java"
	case ".kt", ".kts":
		return "Kotlin"
	case ".scala":
		return "Scala"
	case ".groovy", ".gradle":
		return "Groovy"
	case ".rs":
		return "Rust"
	case ".rb":
		return "Ruby"
	case ".php":
		return "PHP"
	case ".swift":
		return "Swift"
	case ".m", ".mm":
		return "Objective-C"
	case ".dart":
		return "Dart"
	case ".zig":
		return "Zig"
	case ".ex", ".exs":
		return "Elixir"
	case ".erl", ".hrl":
		return "Erlang"
	case ".hs":
		return "Haskell"
	case ".ml", ".mli":
		return "OCaml"
	case ".clj", ".cljs", ".cljc":
		return "Clojure"
	case ".lua":
		return "Lua"
	case ".pl", ".pm":
		return "Perl"
	case ".r":
		return "R"
	case ".jl":
		return "Julia"
	case ".nix":
		return "Nix"
	case ".tf":
		return "HCL"
	case ".proto":
		return "Protocol Buffers"
	case ".sql":
		return "SQL"
	case ".sh", ".bash", ".zsh":
		return "Shell"
	case ".ps1", ".psm1":
		return "PowerShell"
	case ".html", ".htm":
		return "HTML"
	case ".css":
		return "CSS"
	case ".scss", ".sass":
		return "Sass"
	case ".vue":
		return "Vue"
	case ".svelte":
		return "Svelte"
	case ".md", ".markdown":
		return "Markdown"
	case ".json":
		return "JSON"
	case ".yaml", ".yml":
		return "YAML"
	case ".toml":
		return "TOML"
	case ".xml":
		return "XML"
	}
	return ""
}

// buildFile returns what a file name says about how a project is built, or "".
func buildFile(name string) string {
	switch name {
	case "go.mod":
		return "Go module"
	case "go.work":
		return "Go workspace"
	case "package.json":
		return "npm package"
	case "deno.json", "deno.jsonc":
		return "Deno"
	case "Cargo.toml":
		return "Cargo"
	case "pyproject.toml":
		return "Python project"
	case "setup.py", "setup.cfg":
		return "setuptools"
	case "requirements.txt":
		return "pip requirements"
	case "Gemfile":
		return "Bundler"
	case "composer.json":
		return "Composer"
	case "pom.xml":
		return "Maven"
	case "build.gradle", "build.gradle.kts":
		return "Gradle"
	case "build.sbt":
		return "sbt"
	case "mix.exs":
		return "Mix"
	case "pubspec.yaml":
		return "pub"
	case "Package.swift":
		return "Swift package"
	case "Makefile", "GNUmakefile", "makefile":
		return "Make"
	case "CMakeLists.txt":
		return "CMake"
	case "meson.build":
		return "Meson"
	case "configure.ac":
		return "Autoconf"
	case "MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel":
		return "Bazel"
	case "Dockerfile", "Containerfile":
		return "Container image"
	case "flake.nix":
		return "Nix flake"
	case "justfile", "Justfile":
		return "just"
	case "Taskfile.yml", "Taskfile.yaml":
		return "Task"
	case "Jenkinsfile":
		return "Jenkins"
	case ".gitlab-ci.yml":
		return "GitLab CI"
	}
	switch extension(name) {
	case ".sln", ".slnx", ".csproj", ".fsproj", ".vbproj":
		return ".NET project"
	}
	return ""
}
