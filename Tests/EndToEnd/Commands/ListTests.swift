import Glibc
import Spool
import TestSupport
import Testing

/// `spoolrun add --from`.
@Suite struct ListTests: ListSuite {
  let spool: TemporarySpool
  let directory: TemporaryDirectory

  init() throws {
    spool = try TemporarySpool()
    directory = try TemporaryDirectory()
  }

  @Test func `each entry becomes a job, once`() async throws {
    let list = try file("http://h/a\nhttp://h/x?v=1\nhttp://h/x?v=2\nhttp://h/a\n\nhttp://h/b\noutput: d/b\n")
    let first = try await add("--from", list)
    let one = "x~\(Self.mark("http://h/x?v=1"))"
    let two = "x~\(Self.mark("http://h/x?v=2"))"
    #expect(first.output == "4 added, 1 in the list twice\n", "\(first)")
    #expect(
      first.errors.hasPrefix("spoolrun: 2 of them have a mark in their names, such as x~"),
      "which names are not as in the list is said")
    #expect(Set(spool.names("new")) == ["a", one, two, "b"] && spool.names("tmp") == [])
    #expect(try text(one) == "url: http://h/x?v=1\noutput: \(one)\n")
    #expect(try text(two) == "url: http://h/x?v=2\noutput: \(two)\n")
    #expect(try text("b") == "url: http://h/b\noutput: d/b\n")
    let second = try await add("--from", list)
    #expect(second.output == "0 added, 4 already there, 1 in the list twice\n" && second.errors == "", "\(second)")
    #expect(spool.names("new").count == 4)
  }

  /// As for `printf 'URL\0' | sha256sum`.
  @Test func `commands that add one list at the same time add it once`() async throws {
    let list = try file((0..<500).map { "http://h/\($0)\n" }.joined())
    let commands = try (0..<3).map { _ in try startSpoolrun(["add", "--spool", spool.root, "--from", list]) }
    var said: [String] = []
    for command in commands { said.append(try await command.result().output) }
    #expect(said.sorted() == ["0 added, 500 already there\n", "0 added, 500 already there\n", "500 added\n"])
    #expect(spool.names("new").count == 500 && spool.names("tmp") == [])
  }

  private static func mark(_ texts: String...) -> Substring { PayloadName.fingerprint(of: texts).prefix(16) }

  @Test func `names that collide do not depend on the order`() async throws {
    let entries = [
      "http://h/x?v=1\n", "http://h/x?v=2\n", "http://h/y\noutput: x\n", "http://h/z\noutput: d/b\n",
      "http://h/b\n", "http://h/b\noutput: e/b\n",
    ]
    #expect(try await add("--from", file(entries.joined(separator: "\n"))).output == "6 added\n")
    let outputs = spool.names("new").compactMap { try? text($0).split(separator: "\n").dropFirst().first }
    #expect(
      Set(outputs) == [
        "output: x", "output: x~\(Self.mark("http://h/x?v=1"))", "output: x~\(Self.mark("http://h/x?v=2"))",
        "output: d/b", "output: e/b",
      ])
    let again = try await add("--from", file(entries.reversed().joined(separator: "\n")))
    #expect(again.output == "0 added, 6 already there\n", "\(again)")
  }

  @Test func `outputs below different roots do not collide`() async throws {
    let entries = ["one", "two"].flatMap { ["http://h/a\noutput: x\nroot: \($0)\n", "http://h/y\nroot: \($0)\n"] }
    let list = try file(entries.joined(separator: "\n"))
    let first = try await add("--from", list)
    #expect(first.output == "4 added\n", "\(first)")
    let texts = try spool.names("new").map(text)
    #expect(texts.count { $0.contains("output: x\n") } == 2 && !texts.contains { $0.contains("~") }, "\(texts)")
    let second = try await add("--from", list)
    #expect(second.output == "0 added, 4 already there\n", "\(second)")
    try await add("--from", file("http://h/a\noutput: x\nroot: r\n\nhttp://h/b\noutput: x\nroot: r\n"))
      .exits(64, saying: "has the output `x`")
  }

  @Test func `the same URL and output in two ways is refused`() async throws {
    try await add("--from", file("http://h/a\n\nhttp://h/a\nattempts: 3\n"))
      .exits(64, saying: ":3: an earlier line asks for the same")
    #expect(spool.names("new") == [] && spool.names("tmp") == [])
  }

  @Test func `a scheme that the worker does not allow is refused with its line`() async throws {
    let list = try file("http://h/a\nftp://h/b\n")
    let refused = try await add("--from", list)
    #expect(
      refused.exitStatus == 64 && refused.errors.contains("\(list):2: the scheme ftp is not enabled"), "\(refused)")
    #expect(spool.names("new") == [] && spool.names("tmp") == [])
    try spool.write("protocols", "ftp,http,https\n")
    #expect(try await add("--from", list).output == "2 added\n")
  }

  @Test func `with --new, what is there in any way is skipped`() async throws {
    let server = try simpleServer()
    try spool.drop("elsewhere", "\(server.url("/a"))\n")
    try spool.drop("b", "http://other/b\n")
    try await spoolrun("hold", "--spool", spool.root, "b").exits(0)
    try await spool.once(exits: 0)
    #expect(spool.names("done") == ["elsewhere"])
    let list = try file(
      "\(server.url("/a"))\n\n\(server.url("/b"))\n\n\(server.url("/c"))\n\n\(server.url("/a"))\noutput: d/a\n")
    let result = try await add("--from", list, "--new")
    #expect(result.output == "2 added, 1 already there, 1 skipped because another job has the name\n", "\(result)")
    #expect(spool.names("new").count == 2 && spool.names("new").contains("c"))
    let again = try await add("--from", list, "--new")
    #expect(again.output == "0 added, 3 already there, 1 skipped because another job has the name\n", "\(again)")
  }

  @Test func `what is there in any state is not dropped again`() async throws {
    let server = try simpleServer()
    let list = try file(["a", "b", "c", "d", "404"].map { server.url("/\($0)\n") }.joined())
    #expect(try await add("--from", list).output == "5 added\n")
    try await spoolrun("hold", "--spool", spool.root, "c").exits(0)
    #expect(try await spoolrun("--once", spool.root).status != .exited(64))
    #expect(spool.names("new") == [] && spool.names("done").count == 3)
    #expect(unlink(spool.path("done/b")) == 0)
    #expect(try await add("--from", list).output == "1 added, 4 already there\n")
    #expect(spool.names("new") == ["b"])
  }

  @Test func `another job of the same name is left alone, and the list's get names of their own`() async throws {
    try spool.drop("a", "http://other/a\n")
    let list = try file("http://h/a\nhttp://i/a\n")
    #expect(try await add("--from", list).output == "2 added\n")
    #expect(try text("a") == "http://other/a\n")
    let others = spool.names("new").filter { $0 != "a" }.map { try? text($0) }
    #expect(Set(others) == Set(["http://h/a", "http://i/a"].map { "url: \($0)\noutput: a~\(Self.mark($0))\n" }))
    #expect(try await add("--from", list).output == "0 added, 2 already there\n")
  }

  @Test func `options hold for all jobs that don't set them`() async throws {
    let list = try file("http://h/a\n\nhttp://h/b\nattempts: 3\noutput: x/b\n")
    let result = try await add("--from", list, "--attempts", "5", "--header", "A: b", "-o", "sets/", "--overwrite")
    #expect(result.output == "2 added\n", "\(result)")
    #expect(try text("a") == "url: http://h/a\noutput: sets/a\nheader: A: b\noverwrite: yes\nattempts: 5\n")
    #expect(try text("b") == "url: http://h/b\noutput: sets/x/b\nheader: A: b\noverwrite: yes\nattempts: 3\n")
  }

  @Test(arguments: [
    ("http://h/a\nhttp://h/\n", ":2: the URL does not end in a file name"), ("http://h/a\nmagnet://x/y\n", ":2: url: "),
    ("http://h/a\n\nurl: http://h/b\noutput: x\n\nurl: http://h/c\noutput: x\n", ":6: an earlier line has the output"),
    ("url: http://h/a\nurl: http://i/b\n", ":1: the URLs end in different names"), ("http://h/a\nfoo\n", ":2: neither"),
    ("http://h/a\n\nurl: http://h/b\nurl: http:///c\noutput: c\n", ":4: url: no host"),
    ("http://h/a\n dir=/srv/x\n", ":1: the output `/srv/x/a` is absolute"),
    ("http://h/a\n\nhttp://h/b\nexpires: 2020-01-01\n", ":3: expires: "),
  ])
  func `a list with a mistake is refused as a whole`(text: String, message: String) async throws {
    let path = try file(text)
    let result = try await add("--from", path)
    #expect(result.exitStatus == 64 && result.output == "", "\(result)")
    #expect(result.errors.hasPrefix("spoolrun: \(path)\(message)"), "\(result)")
    #expect(spool.names("new") == [] && spool.names("tmp") == [])
  }

  @Test(arguments: [
    (["--from", "-", "http://h/a"], "either a list"),
    (["--from", "-", "--name", "x"], "--name, --remote-name and --wait are"),
    (["--from", "https://h/d/SHA256SUMS"], "get https://h/d/SHA256SUMS`, and say `--from SHA256SUMS`"),
    (["--from", "https://h/d/SHA256SUMS"], "--base https://h/d/`"),
    (["--from", "-", "--size", "5"], "--size belongs to one file"),
    (["--from", "-", "-o", "x"], "--output must be a directory for a list"),
    (["--from", "-", "-o", "../"], "--output: contains"),
    (["--from", "-", "--base", "x/"], "spoolrun: --base: no scheme"),
    (["--from", "-", "--base", "ftp://h/x/"], "spoolrun: the scheme ftp is not enabled"),
    (["--from", "-", "--base", "http://h/?x"], "--base: must end in a path"),
    (["--base", "http://h/", "http://h/a"], "are for a list"), ([], "no URL"),
  ])
  func `options that make no sense together`(arguments: [String], message: String) async throws {
    let result = try await spoolrun(["add", "--spool", spool.root] + arguments)
    #expect(result.exitStatus == 64 && result.errors.contains(message), "\(result)")
  }

  @Test func `a list that cannot be opened`() async throws {
    try await add("--from", "\(directory.path)/none\u{1b}").exits(66, saying: "none\\x1b: No such file")
  }

  /// Lists of the programs that make them, by pipe: the digests are those of the files.
  @Test(
    .enabled("cksfv, rhash and openssl") {
      try await Need.areMet(.program("cksfv"), .program("rhash"), .program("openssl"), .program("md5sum"))
    },
    arguments: [
      "sha256sum a 'd/b c'", "md5sum -b a 'd/b c'", "sha512sum --tag a 'd/b c'", "cksum -a sha1 a 'd/b c'",
      "openssl dgst -sha256 a 'd/b c'", "rhash --sfv a 'd/b c'", "cksfv a 'd/b c'", "rhash --bsd -MH a 'd/b c'",
      "find . -name '[ab]*' | sort | xargs -d '\\n' sha1sum", "sha256sum a 'd/b c' | gzip",
      "rhash --crc32 --simple a 'd/b c'",
    ])
  func `checksums of real programs hold`(command: String) async throws {
    let server = try ScriptedServer { request, reply in
      try reply.respond("200 OK", body: Array((request.target == "/p/a" ? "a\n" : "b c\n").utf8))
    }
    let line = """
      set -o pipefail; mkdir d; echo a >a; echo 'b c' >'d/b c'
      \(command) | \(try productPath("spoolrun")) add --spool "$1" --from - --base "$2"
      """
    let result = try await run(
      ["/bin/bash", "-c", line, "bash", spool.root, server.url("/p")], directory: directory.path)
    #expect(result.output == "2 added\n", "\(result)")
    try await spool.once(exits: 0)
    #expect(spool.payloads == ["a", "d/b c"])
    let receipt = try #require(try spool.lines("done/b c").first { $0.key == "verified" })
    #expect(receipt["size"] == "4")
    #expect(server.requests.map(\.target).contains("/p/d/b%20c"))
  }

  @Test(
    .enabled("python3") { try await Need.program("python3").isMet() },
    arguments: [
      ("ena accession=ERR1.tsv", "ERR1_2.fastq.gz", "https://ftp.sra.ebi.ac.uk/vol1/fastq/ERR1/ERR1_2.fastq.gz"),
      ("zenodo zenodo.json", "data set.zip", "https://zenodo.org/api/records/1/files/data%20set.zip/content"),
      ("pooch http://h/x pooch-registry.txt", "b.txt", "http://h/x/sub/b.txt"),
      (
        "huggingface O/N main huggingface.json", "model v1.bin",
        "https://huggingface.co/O/N/resolve/main/sub/model%20v1.bin"
      ),
    ])
  func `the filters of contrib write lists`(filter: String, name: String, url: String) async throws {
    let line =
      "set -o pipefail; \(SourceTree.root)/contrib/lists/\(filter) | $spoolrun add --spool \(spool.root) --from -"
    let result = try await run(
      ["/bin/bash", "-c", line], environment: testEnvironment.merging(["spoolrun": productPath("spoolrun")]) { $1 },
      directory: "\(SourceTree.root)/Tests/Units/SpoolLists/Samples")
    #expect(result.output == "2 added\n" || filter.hasPrefix("zenodo"), "\(result)")
    let job = try text(name)
    #expect(job.hasPrefix("url: \(url)\n"), "\(job)")
    #expect(job.contains("md5: ") || job.contains("sha256: "), "\(job)")
  }

  @Test(.timeLimit(.minutes(10))) func `what a killed command has not dropped, the next one does`() async throws {
    // Two groups, of which the second is not dropped yet.
    let unique = 20_000
    let list = try file((0..<unique + 2000).map { "http://h/\($0 % 100)/x-\($0 % unique)\n" }.joined())
    var dropped = unique
    // On a busy machine the kill may come too late.
    for _ in 0..<10 where dropped == unique {
      for name in spool.names("new") { try #require(unlink(spool.path("new/\(name)")) == 0) }
      let command = try startSpoolrun(["add", "--spool", spool.root, "--from", list])
      try await waitUntil("jobs are dropped") { !self.spool.names("new").isEmpty }
      try await command.stop(SIGKILL)
      dropped = spool.names("new").count
    }
    #expect(dropped > 0 && dropped < unique)
    let again = try await add("--from", list)
    #expect(again.output == "\(unique - dropped) added, \(dropped) already there, 2000 in the list twice\n", "\(again)")
    #expect(Set(spool.names("new")) == Set((0..<unique).map { "x-\($0)" }))
    for number in 0..<unique {
      let job = try text("x-\(number)")
      if job != "url: http://h/\(number % 100)/x-\(number)\n" { Issue.record("x-\(number): \(job)") }
    }
  }

  @Test(.enabled("a terminal") { try await Need.terminal.isMet() })
  func `a long list shows how far it is`() async throws {
    // The pause makes the first half long, and there are enough jobs to make the second half long on fast machines.
    let list = "seq -f http://h/x-%.0f 10000; sleep 0.4; seq -f http://h/y-%.0f 10000"
    let line = "(\(list)) | \(try productPath("spoolrun")) add --spool \(spool.root) --from -"
    var output = ""
    // It draws five times a second, and nothing where it stood still for all of a half: then once more.
    for _ in 0..<10 where !(output.contains("checking ") && output.contains("dropping ")) {
      for name in spool.names("new") { try #require(unlink(spool.path("new/\(name)")) == 0) }
      output = try await runInTerminal(line, environment: testEnvironment.merging(["TERM": "xterm"]) { $1 }).output
    }
    #expect(output.contains("checking ") && output.contains("dropping "), "\(output)")
    #expect(output.contains("20000 added\r\nspoolrun: no worker runs: "))
  }
}
