import TestSupport
import Testing

/// What bash(1) offers after a tab.
@Suite struct CompletionTests {
  /// - Parameter words: the command line; the last word is the one that the cursor is behind.
  private func offers(_ words: String..., directory: String? = nil) async throws -> [String] {
    let script = """
      PATH=${1%/*}:$PATH
      eval "$("$1" --generate-completion-script bash)"; shift
      COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
      _spoolrun spoolrun "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    let result = try await run(
      ["/bin/bash", "-c", script, "bash", try productPath("spoolrun")] + words, directory: directory)
    #expect(result.status == .exited(0) && result.errors == "", "\(result)")
    return result.output.split(separator: "\n").map(String.init)
  }

  @Test func `options of the default command`() async throws {
    #expect(try await offers("spoolrun", "--li") == ["--limit-rate"])
    #expect(try await offers("spoolrun", "--once", "--log-format", "j") == ["json"])
    #expect(try await offers("spoolrun", "--spool", "s", "ho") == ["hold"])
    #expect(try await offers("spoolrun", "--spool", "s", "add", "--prio") == ["--priority"])
    #expect(try await offers("spoolrun", "h") == ["hold", "help"])
  }

  /// The scripts of the parser's library are mended, so a new version of it may break that unnoticed.
  @Test func `options of the default command in other shells`() async throws {
    func script(_ shell: String) async throws -> String {
      try await run([try productPath("spoolrun"), "--generate-completion-script", shell]).output
    }
    #expect(try await script("zsh").contains("        _spoolrun_run\n        return\n"))
    let fish = try await script("fish")
    #expect(fish.contains("_for_flags_or_options \"spoolrun\" limit-rate' -l 'limit-rate'"))
    #expect(fish.contains("__spoolrun_parse_subcommand 0 'once' "))
  }

  @Test func `values that an option has`() async throws {
    #expect(try await offers("spoolrun", "add", "--priority", "") == ["high", "normal", "low"])
    #expect(try await offers("spoolrun", "get", "--priority", "n") == ["normal"])
    #expect(try await offers("spoolrun", "add", "--format", "sf") == ["sfv"])
  }

  @Test func `the commands that help is about`() async throws {
    #expect(try await offers("spoolrun", "help", "re") == ["report", "release", "retry"])
    #expect(try await offers("spoolrun", "help", "").contains("add"))
  }

  /// Strangers choose them, and bash(1) expands what its script is given.
  @Test func `names of jobs are offered as they are, and nothing in them runs`() async throws {
    let spool = try TemporarySpool()
    let names = ["$(touch PWNED)", "`touch PWNED`", "a b", "a\\b", "it's; touch PWNED #", "{1,2}~", "é:"]
    for name in names + ["-n", "two\nlines", "\u{1B}[2J", "\u{202E}txt", "a.part"] {
      try spool.write("new/\(name)", "http://h/x\n")
    }
    #expect(try await offers("spoolrun", "hold", "--spool", spool.root, "", directory: spool.root) == names)
    #expect(try await offers("spoolrun", "hold", "--spool", spool.root, "it", directory: spool.root) == [names[4]])
    #expect(fileStatus(spool.path("PWNED")) == nil)
  }

  @Test func `of many jobs those are offered that begin so, in whatever state`() async throws {
    let spool = try TemporarySpool()
    for number in 1...1100 { try spool.write("done/a\(number)", []) }
    for path in ["cur/z1:host.1.0000002a", "hold/z2", "partial/z2.part", "done/z3"] {
      try spool.write(path, "http://h/x\n")
    }
    for command in ["status", "explain"] {
      #expect(try await offers("spoolrun", command, "--spool", spool.root, "z") == ["z1", "z2", "z3"])
    }
    #expect(try await offers("spoolrun", "status", "--spool", spool.root, "").prefix(2) == ["a1", "a10"])
    #expect(try await offers("spoolrun", "status", "--spool", spool.root, "").contains("z1"))
    #expect(try await offers("spoolrun", "verify", "--spool", spool.root, "z") == ["z3"])
  }
}
