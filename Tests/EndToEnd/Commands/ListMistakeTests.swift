import Glibc
import TestSupport
import Testing

/// What `spoolrun add --from` says of lists that are not all right, and which order their jobs have.
@Suite struct ListMistakeTests: ListSuite {
  let spool: TemporarySpool
  let directory: TemporaryDirectory

  init() throws {
    spool = try TemporarySpool()
    directory = try TemporaryDirectory()
  }

  @Test func `up to ten mistakes are named, and the rest counted`() async throws {
    let lines =
      (1...12).map { "http://h/\($0)" } + (1...12).map { $0 % 2 == 0 ? "http://h:x/\($0)" : "http://h/\($0) b" }
    let path = try file(lines.joined(separator: "\n"))
    let refused = try await add("--from", path)
    let errors = refused.errors.split(separator: "\n")
    #expect(refused.exitStatus == 64 && refused.output == "" && errors.count == 3, "\(refused)")
    #expect(errors[0].hasPrefix("spoolrun: \(path):13,15,17,19,21: a blank in the URL: write %20"), "\(errors[0])")
    #expect(errors[1].hasPrefix("spoolrun: \(path):14,16,18,20,22: url: port is not"), "\(errors[1])")
    #expect(
      errors[2].hasPrefix("spoolrun: \(path): 12 entries cannot be used, these and more;")
        && errors[2].hasSuffix("nothing is dropped"))
    #expect(spool.names("new") == [] && spool.names("tmp") == [])
    let left = try await add("--from", path, "--ignore-unknown")
    #expect(left.exitStatus == 0 && left.output == "12 added, 12 left out\n", "\(left)")
    #expect(
      left.errors.hasPrefix("spoolrun: \(path):13,") && left.errors.hasSuffix("are left out, 12 in all\n"), "\(left)")
  }

  @Test func `a list whose lines of one file are apart says so`() async throws {
    let sum = "5891b5b522d5df086d0ff0b110fbd9d2"
    let lines = [sum, sum + sum].flatMap { sum in ["a", "b"].map { "\(sum)  \($0)\n" } }
    try await add("--base", "http://h/", "--from", file(lines.joined()))
      .exits(64, saying: "put the lines of one file together")
  }

  @Test func `a list of which nothing is left is refused`() async throws {
    let list = try file("magnet:?xt=urn:btih:0\nhttp://h/\n")
    let nothing = try await add("--from", list, "--ignore-unknown")
    #expect(nothing.exitStatus == 64 && nothing.output == "", "\(nothing)")
    #expect(
      nothing.errors.contains("2 entries cannot be used; nothing else is in it; nothing is dropped"), "\(nothing)")
    try await spoolrun(["get", "--spool", spool.root, "--from", list, "--ignore-unknown"])
      .exits(64, saying: "nothing is fetched")
  }

  @Test func `no option becomes two lines of a job`() async throws {
    let (url, two) = ("http://127.0.0.1:9/x", "a\noverwrite: yes")
    let list = ["--from", try file("\(url)\n")]
    for arguments in [
      ["get", "-o", "\(directory.path)/\(two)", url], ["get", "-o", "\(directory.path)/", "-H", "X: \(two)"] + list,
      ["add", "-H", "X: \(two)"] + list, ["add", "-H", "X: a\u{7F}", url], ["subscribe", "--referer", two, url],
    ] {
      let result = try await spoolrun([arguments[0], "--spool", spool.root] + arguments.dropFirst())
      #expect(result.exitStatus == 64 && result.errors.contains(": contains control bytes"), "\(arguments): \(result)")
    }
    #expect(["new", "partial", "failed", "standing"].flatMap { spool.names($0) } == [])
  }

  @Test func `hosts beyond ASCII, encoded slashes and bytes block no list`() async throws {
    let list = try file("http://bücher.example/a\nhttp://h/o/images%2F0.png?alt=media\nhttp://h/caf%E9.pdf\n")
    #expect(try await add("--from", list).output == "3 added\n")
    #expect(Set(spool.names("new")) == ["a", "0.png", "caf%E9.pdf"])
  }

  @Test func `a host beyond ASCII is asked in the form that DNS has`() async throws {
    let scene = try Scene.echoing()
    let url = scene.server.url("/a").replacing("127.0.0.1", with: "bücher.localhost")
    #expect(try await scene.spoolrun("add", "--from", file("\(url)\n")).output == "1 added\n")
    try await scene.spoolrun("run", "--once").exits(0)
    #expect(scene.server.requests.map { $0.value("Host")?.hasPrefix("xn--bcher-kva.localhost:") } == [true])
  }

  @Test func `a list says by its name what its digests are`() async throws {
    let digits = String(repeating: "5891b5b522d5df08", count: 8)
    try await add("--base", "http://h/", "--from", file("\(digits)  a\n", name: "b3sums.txt"))
      .exits(64, saying: "b3sum by the list's name")
    #expect(
      try await add("--base", "http://h/", "--from", file("\(digits)  a\n", name: "SHA512SUMS")).output == "1 added\n")
    let alone = try file("\(digits.prefix(64))\n", name: "b.iso.sha256")
    #expect(try await add("--base", "http://h/", "--from", alone).output == "1 added\n")
    #expect(try text("b.iso") == "url: http://h/b.iso\noutput: b.iso\nsha256: \(digits.prefix(64))\n")
  }

  @Test func `jobs run in the order of the list's lines`() async throws {
    let scene = try Scene.echoing()
    // In no other order: not by name, and not as a directory has them.
    let names = (0..<60).map { "\(($0 * 37) % 60)" }
    let list = try file(names.map { scene.server.url("/\($0)\n") }.joined())
    #expect(try await scene.spoolrun("add", "--from", list).output == "60 added\n")
    try await scene.spoolrun("run", "--once", "-j", "1").exits(0)
    #expect(scene.server.requests.map(\.target) == names.map { "/\($0)" })
  }

  @Test func `jobs that are added one after the other run in that order`() async throws {
    let scene = try Scene.echoing()
    let names = ["d", "a", "cc", "b", "f", "e"]
    for name in names { try await scene.spoolrun("add", scene.server.url("/\(name)")) }
    try await scene.spoolrun("run", "--once", "-j", "1").exits(0)
    #expect(scene.server.requests.map(\.target) == names.map { "/\($0)" })
  }
}
