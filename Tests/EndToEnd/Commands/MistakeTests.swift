import Glibc
import TestSupport
import Testing

@testable import spoolrun

/// Commands that were meant otherwise, and questions before what cannot be undone.
@Suite struct MistakeTests {
  private static let commands = [
    "run", "init", "get", "add", "verify", "status", "hold", "release", "retry", "cancel", "clean", "help",
  ]

  @Test(arguments: [
    ("stauts", "status"), ("statsu", "status"), ("Status", "status"), ("pause", "hold"), ("resume", "release"),
    ("rm", "cancel"), ("ls", "status"), ("download", "get"), ("ad", "add"), ("cancle", "cancel"), ("verfy", "verify"),
    ("spool", nil), ("downloads", nil), ("files", nil), ("x", nil), ("srv", nil),
  ])
  func `a word that is no command is told from a spool`(word: String, command: String?) {
    #expect(Suggestion.command(for: word, among: Self.commands) == command)
  }

  @Test func `no command is taken for another, and none for a name of its own`() {
    for command in Spoolrun.commandNames {
      #expect(Suggestion.command(for: command, among: Spoolrun.commandNames) == command)
    }
  }

  @Test func `a typo suggests, and starts nothing`() async throws {
    let directory = try TemporaryDirectory()
    for (word, command) in [("stauts", "status"), ("pause", "hold")] {
      let result = try await spoolrun(word, "--all", directory: directory.path)
      #expect(
        result.status == .exited(64) && result.errors.contains("did you mean `spoolrun \(command)`?"), "\(result)")
    }
    let stranger = try await spoolrun("lst", "foo", directory: directory.path)
    #expect(
      stranger.status == .exited(64) && stranger.errors.hasPrefix("spoolrun: lst: no such command"), "\(stranger)")
    // A spool may be called so.
    try await spoolrun("init", "stauts", directory: directory.path).exits(0)
    try await spoolrun("stauts", "--once", directory: directory.path).exits(0)
    try await spoolrun("-v", "get", "http://h/x", directory: directory.path).exits(64, saying: "`spoolrun get -v`")
    let url = try await spoolrun("https://us3r:s3cret@h/x?token=1", directory: directory.path).exits(64)
    for command in ["get", "add"] { #expect(url.errors.contains("`spoolrun \(command) URL`"), "\(url)") }
    #expect(!url.errors.contains("s3cret") && !url.errors.contains("token"), "\(url)")
  }

  @Test(arguments: [
    ["get", "-uus3r:s3cret", "http://h/x"], ["add", "-HCookie: s3cret", "http://h/x"],
    ["status", "http://us3r:s3cret@h/x"], ["cancel", "-v", "http://us3r:s3cret@h/x"],
    ["add", "--spool", "http://us3r:s3cret@h/x", "http://h/x"], ["url", "http://us3r:s3cret@h/x", "http://h/x"],
    ["get", "--spool", "http://us3r:s3cret@h/x", "http://h/x"], ["verify", "--refetch", "http://us3r:s3cret@h/x"],
    ["--user=us3r:s3cret", "get", "http://h/x"], ["-uus3r:s3cret", "get", "http://h/x"],
  ])
  func `a password in the wrong place is not repeated`(arguments: [String]) async throws {
    let directory = try TemporaryDirectory()
    let result = try await spoolrun(arguments, directory: directory.path)
    #expect(result.status == .exited(64) && !"\(result.output)\(result.errors)".contains("s3cret"), "\(result)")
  }

  @Test(arguments: [
    ["status"], ["add", "http://h/a"], ["hold", "--all"], ["verify"], ["clean"], ["init"], ["run", "--once"],
  ])
  func `each command takes the spool by its option, before the command's name or behind it`(arguments: [String])
    async throws
  {
    for isLeading in [true, false] {
      let spool = try TemporarySpool()
      let option = ["--spool", spool.root]
      let line = isLeading ? option + arguments : [arguments[0]] + option + arguments.dropFirst()
      if arguments[0] == "run" { try spool.drop("bad", "no job\n") }
      let result = try await spoolrun(line)
      #expect(result.status == .exited(arguments[0] == "run" ? 1 : 0), "\(line): \(result)")
      if arguments[0] == "add" { #expect(spool.names("new") == ["a"]) }
    }
    let joined = try TemporarySpool()
    try await spoolrun("--spool=\(joined.root)", "add", "http://h/a").exits(0)
    #expect(joined.names("new") == ["a"])
  }

  @Test(
    .enabled("needs script(1)") { try await Need.terminal.isMet() },
    arguments: [("y", true), ("n", false), ("", false)], ["--all", "--failed"])
  func `cancel says how many, and asks in a terminal`(answer: (String, Bool), flag: String) async throws {
    let spool = try TemporarySpool()
    let text = Array("https://a.example/x\n".utf8)
    for name in ["failed/a", "failed/b"] { try spool.write(name, text) }
    let command = "\(try productPath("spoolrun")) cancel \(flag) --spool \(spool.root)"
    let line = "printf '\(answer.0)\\n' | script -qec '\(command)' /dev/null"
    let result = try await run(["/bin/sh", "-c", line])
    #expect(result.output.contains("cancel 2 jobs, and remove their data? [y/N]"), "\(result)")
    #expect(spool.names("failed") == (answer.1 ? [] : ["a", "b"]))
    #expect(result.status == .exited(answer.1 ? 0 : 1), "\(result)")
  }

  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func `cancel does not ask for what was named, or with --yes`() async throws {
    let spool = try TemporarySpool()
    let text = Array("https://a.example/x\n".utf8)
    for name in ["a", "b"] { try spool.write("failed/\(name)", text) }
    for (arguments, left) in [("a", ["b"]), ("--all --yes", [])] {
      let result = try await runInTerminal(
        "\(try productPath("spoolrun")) cancel --spool \(spool.root) \(arguments) </dev/null")
      #expect(result.status == .exited(0) && !result.output.contains("[y/N]"), "\(result)")
      #expect(spool.names("failed") == left)
    }
  }

  @Test(arguments: [["hold"], ["release"], ["retry"], ["cancel"], ["prioritise"], ["verify"], ["url"]])
  func `a spool among names of jobs is told from a job`(command: [String]) async throws {
    let directory = try TemporaryDirectory()
    try await spoolrun("init", "spool", directory: directory.path).exits(0)
    try writeFile("\(directory.path)/spool/new/b1", "http://h/b1\n")
    let result = try await spoolrun(
      command + ["spool", command == ["url"] ? "http://h/b2" : "b1"], directory: directory.path)
    #expect(result.exitStatus == 64 && result.output == "", "\(result)")
    #expect(
      result.errors.hasPrefix("spoolrun: spool is a spool, and no job of this name is there")
        && result.errors.contains("`spoolrun \(command[0]) --spool spool`"), "\(result)")
    #expect(try readFile("\(directory.path)/spool/new/b1") == Array("http://h/b1\n".utf8), "nothing is done")
    try writeFile("\(directory.path)/spool/new/spool", "http://h/c\n")
    let job = try await spoolrun("hold", "spool", directory: directory.path)
    #expect(job.status == .exited(0), "a job may be called like a spool: \(job)")
  }

  @Test func `status of what is neither a spool nor a job`() async throws {
    let directory = try TemporaryDirectory()
    try await spoolrun("init", "spool", directory: directory.path).exits(0)
    let result = try await spoolrun("status", "nosuchspool", "x", directory: directory.path)
    #expect(
      result.errors == """
        spoolrun: nosuchspool: no such job in spool, and no spool of this name
        spoolrun: x: no such job in spool

        """, "\(result)")
    #expect(result.exitStatus == 1)
  }

  @Test func `completions offer the jobs that the command is for`() async throws {
    let scene = try Scene()
    for place in ["new/a", "hold/b", "failed/c", "done/d", "cur/e:host.1.0000000a", "partial/f", "partial/f.part"] {
      try scene.spool.write(place, "https://a.example/x\n")
    }
    for (command, names) in [
      ("hold", ["a", "e", "f"]), ("release", ["b"]), ("retry", ["c", "f"]), ("cancel", ["a", "b", "c", "e", "f"]),
      ("verify", ["d"]),
    ] {
      // What the scripts for shells call.
      let result = try await scene.spoolrun(
        "---completion", command, "--", "positional@0", "1", "0", "spoolrun", command, "")
      #expect(result.output.split(separator: "\n").map(String.init) == names, "\(command): \(result)")
    }
    let other = try await spoolrun(
      "---completion", "cancel", "--", "positional@0", "1", "0", "spoolrun", "cancel", "--spool", scene.spool.root, "")
    #expect(other.output.contains("a\nb\nc\n"), "\(other)")
  }

  /// Under cron as well, and once, although it is looked at again.
  @Test func `a job that lacks its last newline is told when it is seen`() async throws {
    let server = try simpleServer()
    try await replay {
      let spool = try TemporarySpool()
      let began = ContinuousClock.now
      try spool.write("new/a", server.url("/a"))
      // Another pass comes after the end of a job.
      try spool.drop("b", server.url("/b") + "\n")
      let result = try await spoolrun("--once", spool.root)
      // After 10 seconds it is given up.
      if ContinuousClock.now - began > .seconds(9) { return false }
      #expect(result.status == .exited(0) && spool.places(of: "a") == ["new/a"], "\(result)")
      #expect(result.errors.hasPrefix("spoolrun: a: not started: its last line has no newline"), "\(result)")
      #expect(result.errors.split(separator: "\n").count == 1, "\(result)")
      return true
    }
  }

  @Test func `an output that leads through a link is refused in words`() async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    try #require(mkdir(spool.path("files/sets"), 0o700) == 0 && symlink("/tmp", spool.path("files/sets/link")) == 0)
    try spool.drop("a", "url: \(server.url("/a"))\noutput: sets/link/x\n")
    try await spool.once(exits: 1)
    let reason = try spool.lastFailure("failed/a")["reason"] ?? ""
    #expect(reason.contains("sets/link: it is a symbolic link"), "\(reason)")
    #expect(try spool.lastFailure("failed/a")["code"] == "bad-output" && server.requests.isEmpty)
  }
}
