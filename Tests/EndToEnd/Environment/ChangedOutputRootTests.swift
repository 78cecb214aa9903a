import Glibc
import TestSupport
import Testing

/// An output root that goes, comes back, or is another one by then: a receipt names the path that a reader will follow.
@Suite struct ChangedOutputRootTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws {
    server = try simpleServer()
    spool = try TemporarySpool()
  }

  private static let body = Array("payload\n".utf8)

  private func drop(_ name: String) throws { try spool.drop(name, "\(server.url("/\(name)"))\n") }
  private func waitUntilDone(_ name: String) async throws {
    try await waitUntil("\(name) is done") { spool.places(of: name) == ["done/\(name)"] }
  }

  @Test(arguments: [true, false])
  func `jobs wait while it is missing, and go on in the one that is made`(isOwn: Bool) async throws {
    let root = isOwn ? spool.path("files") : spool.root + "-out"
    if !isOwn { try #require(mkdir(root, 0o700) == 0) }
    let worker = try startSpoolrun(isOwn ? ["-v", spool.root] : ["-v", "-d", root, spool.root])
    try drop("a")
    try await waitUntilDone("a")
    try #require(rename(root, root + "-old") == 0)
    try drop("b")
    try await waitUntil("it waits", timeout: .seconds(20)) { spool.names("new") == ["b"] && server.requests.count == 1 }
    try #require(mkdir(root, 0o700) == 0)
    try await waitUntilDone("b")
    #expect(try readFile("\(root)/b") == Self.body && names(in: root + "-old") == ["a"])
    try await worker.stop().exits(0)
    #expect(try !spool.lines("done/b").contains { $0.key == "failed" })
  }

  /// Between the transfer and the payload's name: the hook stands for whatever takes its time.
  @Test(arguments: [true, false])
  func `a root that is replaced while a job runs gets its payload, and not the old one`(isMadeAnew: Bool) async throws {
    let root = spool.root + "-out"
    try #require(mkdir(root, 0o700) == 0)
    let anew = isMadeAnew ? "mkdir \(root)" : "true"
    try spool.install("verify", "test -e \(root)-old || { mv \(root) \(root)-old && \(anew); }")
    try drop("a")
    let result = try await spoolrun("--once", "-v", "-d", root, spool.root)
    #expect(names(in: root + "-old") == [])
    if !isMadeAnew {
      #expect(result.status == .exited(75) && result.errors.contains(" output-missing "), "\(result)")
      #expect(spool.names("partial") == ["a", "a.part"])
      #expect(try !spool.lines("partial/a").contains { $0.key == "failed" || $0.key == "done" })
      try #require(rename(root + "-old", root) == 0)
      try await spoolrun("--once", "-d", root, spool.root).exits(0)
    }
    #expect(spool.places(of: "a") == ["done/a"], "\(result)")
    #expect(try readFile("\(root)/a") == Self.body && server.requests.count == 1)
    try await spoolrun("verify", "--spool", spool.root).exits(0)
  }

  @Test(.enabled("needs root and a mount namespace") { try await Need.mounts.isMet() })
  func `what is mounted over it later gets the payloads`() async throws {
    let root = spool.root + "-out"
    try #require(mkdir(root, 0o700) == 0)
    let script = """
      program=$1 spool=$2
      "$program" -d "$spool-out" "$spool" &
      until [ -e "$spool-mount" ]; do sleep 0.05; done
      mount -t tmpfs none "$spool-out"
      mv "$spool/hold/b" "$spool/new/b"
      until [ -e "$spool/done/b" ]; do sleep 0.05; done
      ls "$spool-out"
      kill $!; wait $!
      """
    let worker = try RunningCommand(
      ["/usr/bin/unshare", "--mount", "/bin/sh", "-uc", script, "sh", try productPath("spoolrun"), spool.root])
    try drop("a")
    try await waitUntilDone("a")
    try spool.write("hold/b", "\(server.url("/b"))\n")
    try writeFile(spool.root + "-mount", [])
    let result = try await worker.result()
    #expect(result.output == "b\n" && names(in: root) == ["a"], "\(result)")
  }

  /// Nothing is wrong with the job: it waits, and says which directory it cannot write to. Nothing is fetched.
  @Test(.enabled("needs root and a mount namespace") { try await Need.mounts.isMet() }, arguments: ["a", "d/a"])
  func `jobs wait while it is read-only, whatever attempts they have`(output: String) async throws {
    let root = spool.root + "-out"
    try #require(mkdir(root, 0o700) == 0)
    try spool.drop("a", "url: \(server.url("/a"))\noutput: \(output)\nattempts: 1\n")
    let script = "mount --bind \(root) \(root); mount -o remount,bind,ro \(root); exec \"$@\""
    for _ in 1...2 {
      let result = try await spoolrun(
        "--once", "-d", root, spool.root, prefix: ["/usr/bin/unshare", "--mount", "/bin/sh", "-euc", script, "sh"])
      #expect(result.status == .exited(75), "\(result)")
      let failure = try spool.lastFailure("partial/a")
      #expect(failure["code"] == "no-output" && failure["burned"] == "no")
      #expect(failure["reason"]?.hasPrefix("cannot write to \(root)") == true, "\(failure)")
      try spool.makeDue("a")
    }
    #expect(server.requests.isEmpty)
    try await spoolrun("--once", "-d", root, spool.root).exits(0)
    #expect(try readFile("\(root)/\(output)") == Self.body)
  }

  /// It became so after the transfer: nothing is fetched again.
  @Test(.enabled("needs root and a mount namespace") { try await Need.mounts.isMet() })
  func `what is fetched is kept while its directory is read-only`() async throws {
    let root = spool.root + "-out"
    try #require(mkdir(root, 0o700) == 0)
    try spool.install("verify", "mount -o remount,bind,ro \(root)")
    try drop("a")
    let script = "mount --bind \(root) \(root); exec \"$@\""
    let result = try await spoolrun(
      "--once", "-d", root, spool.root, prefix: ["/usr/bin/unshare", "--mount", "/bin/sh", "-euc", script, "sh"])
    #expect(result.status == .exited(75), "\(result)")
    #expect(try spool.lastFailure("partial/a")["burned"] == "no")
    try spool.install("verify", "true")
    try spool.makeDue("a")
    try await spoolrun("--once", "-d", root, spool.root).exits(0)
    #expect(try readFile("\(root)/a") == Self.body && server.requests.count == 1)
  }

  /// What a server sends could become a job, the defaults of all jobs, or a hook.
  @Test(arguments: ["..", ".", "new", "tmp", "hold", "other", "../link", "hooks"])
  func `a root that holds the spool or lies in it is refused`(_ place: String) async throws {
    try #require(mkdir(spool.path("other"), 0o700) == 0 && mkdir(spool.path("hooks"), 0o700) == 0)
    try #require(symlink("spool/new", spool.root + "/../link") == 0)
    try drop("a")
    for mode in ["--once", "-v"] {
      try await spoolrun(mode, "-d", spool.path(place), spool.root).exits(78, saying: "the output directory")
    }
    #expect(spool.places(of: "a") == ["new/a"] && server.requests.isEmpty)
  }

  @Test(arguments: ["new", ".", "..", "hold"])
  func `files that is a link into the spool is refused as well`(_ target: String) async throws {
    try #require(rmdir(spool.path("files")) == 0 && symlink(target, spool.path("files")) == 0)
    try drop("a")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(78) && spool.places(of: "a") == ["new/a"], "\(result)")
  }

  @Test(arguments: ["files", "files/sub", "../spool-beside"])
  func `one in files or beside the spool is none of these`(_ place: String) async throws {
    if place != "files" { try #require(mkdir(spool.path(place), 0o700) == 0) }
    try drop("a")
    try await spoolrun("--once", "-d", spool.path(place), spool.root).exits(0)
    #expect(try readFile(spool.path("\(place)/a")) == Self.body)
  }

  /// No root of any name, but a mount below it.
  @Test(
    .enabled("needs root and a mount namespace") { try await Need.mounts.isMet() }, arguments: ["", "/new", "/hold"])
  func `a mount that leads into the spool is no way to an output`(_ place: String) async throws {
    let root = spool.root + "-out"
    try #require(mkdir(root, 0o700) == 0 && mkdir("\(root)/sub", 0o700) == 0)
    let output = place.isEmpty ? "sub/new/x" : "sub/x"
    try spool.drop("a", "url: \(server.url("/a"))\noutput: \(output)\n")
    let script = "mount --bind \(spool.root)\(place) \(root)/sub; exec \"$@\""
    let result = try await spoolrun(
      "--once", "-d", root, spool.root, prefix: ["/usr/bin/unshare", "--mount", "/bin/sh", "-euc", script, "sh"])
    #expect(result.status == .exited(1), "\(result)")
    #expect(try spool.lastFailure("failed/a")["code"] == "bad-output")
    #expect(spool.names("new") == [] && spool.names("hold") == [])
  }
}
