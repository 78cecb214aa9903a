import Glibc
import TestSupport
import Testing

/// Files that commands write, where something else than a regular file has the name.
@Suite struct SpecialFileTests: GetScene {
  let home: TemporaryDirectory
  private let store: TemporarySpool

  init() throws { (home, store) = (try Self.makeHome(), try TemporarySpool()) }

  private var commands: [[String]] {
    [["report", "--spool", store.root, "-o"], ["status", "--spool", store.root, "--textfile"]]
  }

  @Test func `a pipe is written to, and stays`() async throws {
    for command in commands {
      let path = "\(here)/pipe"
      try #require(mkfifo(path, 0o600) == 0)
      let reader = try RunningCommand(["/bin/cat", path])
      let result = try await spoolrun(command + [path])
      let read = try await reader.result().output
      #expect(result.status == .exited(0) && !read.isEmpty, "\(result)")
      #expect((fileStatus(path)?.st_mode ?? 0) & S_IFMT == S_IFIFO && names(in: here, isHiddenToo: true) == ["pipe"])
      try #require(unlink(path) == 0)
    }
  }

  @Test(.enabled("needs leave to make device files") { try await Need.devices.isMet() })
  func `a device is written to, and stays`() async throws {
    let path = "\(here)/null"
    try #require(mknod(path, S_IFCHR | 0o666, 1 << 8 | 3) == 0)
    for command in commands {
      try await spoolrun(command + [path]).exits(0)
      #expect((fileStatus(path)?.st_mode ?? 0) & S_IFMT == S_IFCHR)
    }
    let server = try simpleServer()
    try await get("--overwrite", "-o", "null", server.url("/a"))
      .exits(64, saying: "-o null: nothing of a file is shown")
    #expect((fileStatus(path)?.st_mode ?? 0) & S_IFMT == S_IFCHR && server.requests.isEmpty)
  }

  @Test func `no download takes the place of a link to a pipe, or of an open file`() async throws {
    try #require(mkfifo("\(here)/pipe", 0o600) == 0 && symlink("pipe", "\(here)/link") == 0)
    let server = try simpleServer()
    for output in ["pipe", "link", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
      // A program that had the fault would replace this machine's /dev/stdout.
      let overwrite = output.hasPrefix("/") ? [] : ["--overwrite"]
      try await start(overwrite + ["-o", output, server.url("/a")]).result()
        .exits(64, saying: "-o \(output): nothing of a file is shown")
    }
    try #require(symlink("\(here)/pipe", store.path("files/a")) == 0)
    try store.drop("a", "url: \(server.url("/a"))\noverwrite: yes\n")
    try await spoolrun("--once", store.root).exits(1, saying: "is no regular file, and is not overwritten")
    #expect((fileStatus(store.path("files/a"))?.st_mode ?? 0) & S_IFMT == S_IFLNK && server.requests.isEmpty)
  }

  @Test func `a symbolic link is followed`() async throws {
    for command in commands {
      try writeFile("\(home.path)/target", [1])
      try #require(symlink("../target", "\(here)/link") == 0)
      try await spoolrun(command + ["\(here)/link"]).exits(0)
      #expect(try readFile("\(home.path)/target").count > 1)
      #expect((fileStatus("\(here)/link")?.st_mode ?? 0) & S_IFMT == S_IFLNK)
      let printed = try await run(
        ["/bin/sh", "-c", #""$0" "$@" | cat"#, try productPath("spoolrun")] + command + ["/dev/stdout"])
      #expect(printed.status == .exited(0) && !printed.output.isEmpty, "\(printed)")
      try #require(unlink("\(here)/link") == 0)
    }
  }

  @Test(arguments: [">", ">>"])
  func `a log that is standard output is written on, and not replaced`(redirection: String) async throws {
    for command in commands {
      let line = #"{ echo before; "$0" "$@" || echo failed; echo after; } "# + redirection + "log"
      _ = try await run(
        ["/bin/sh", "-c", line, try productPath("spoolrun")] + command + ["/dev/stdout"], directory: here)
      let log = try readText("\(here)/log")
      #expect(log.hasPrefix("before\n") && log.hasSuffix("\nafter\n") && !log.contains("failed\n"), "\(log)")
      #expect(log.contains(store.root), "\(log)")
      try #require(unlink("\(here)/log") == 0)
    }
  }
}
