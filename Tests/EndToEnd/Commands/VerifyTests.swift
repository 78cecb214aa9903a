import Glibc
import Spool
import TestSupport
import Testing

@testable import spoolrun

/// `verify` of many payloads, and the lists that it makes of receipts.
@Suite struct VerifyTests {
  private static let algorithms = ["sha256", "sha512", "sha1", "md5"]

  /// Done jobs with these outputs, one named after each number, whose receipts have these digests.
  private func done(_ outputs: [String], digests: String = algorithms.joined(separator: " ")) async throws -> Scene {
    let scene = try Scene.echoing()
    for (number, output) in outputs.enumerated() {
      let lines = digests.isEmpty ? "" : "digests: \(digests)\n"
      try scene.spool.drop("job-\(number)", "\(scene.server.url("/\(number)"))\noutput: \(output)\n\(lines)")
    }
    try await scene.spool.once(exits: 0)
    return scene
  }

  /// In the order of the names, however many are read at a time.
  @Test func severalAtATime() async throws {
    let ways = [[], ["-j", "1"], ["-j7"], ["--jobs=1000"]]
    let outputs = (0..<60).map { "d/\($0)" }
    let scene = try await done(outputs, digests: "")
    for options in ways { #expect(try await scene.spoolrun(["verify"] + options).output == "", "\(options)") }
    for number in stride(from: 0, to: 60, by: 3) {
      try scene.spool.write("files/d/\(number)", "rotten")
    }
    for options in ways {
      let result = try await scene.spoolrun(["verify", "-v"] + options).exits(1, saying: "`spoolrun verify --refetch`")
      let lines = result.output.split(separator: "\n")
      #expect(lines.map { String($0.prefix { $0 != ":" }) } == (0..<60).map { "job-\($0)" }.sorted())
      #expect(lines.count { $0.contains(": changed: d/") } == 20 && lines.count { $0.contains(": sound: d/") } == 40)
    }
    try await scene.spoolrun("verify", "-j0").exits(64, saying: "from 1 to 1000")
  }

  @Test func `a receipt that leaves done after it was listed is not called sound unseen`() async throws {
    let scene = try await done(["a"])
    try scene.spool.write("files/a", "rotten")
    let (owner, boot) = WorkerID.current()
    let spool = try Spool(scene.spool.root, owner: owner, boot: boot)
    let reader = PayloadReader(
      spool: spool, directory: nil, isVerbose: false, receipts: AllReceipts(spool), progress: VerifyProgress())
    let listed = ListedReceipt(name: FileName("job-0"))
    try setModificationTime(scene.spool.path("done/job-0"), secondsFromNow: -86_400)
    #expect(try await scene.spoolrun("clean", "--archive", "1h").output.hasPrefix("archived 1 receipt"))
    #expect(reader.answer(listed).line?.hasPrefix("job-0: changed: a: ") == true)
    let month = try #require(scene.spool.names("done/archive").first)
    try #require(rename(scene.spool.path("done/archive/\(month)/job-0"), scene.spool.path("new/job-0")) == 0)
    let moved = reader.answer(listed)
    #expect(moved.isMoved && moved.problem?.contains("is not checked") == true, "\(moved)")
  }

  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func aBarInATerminal() async throws {
    let scene = try await done(["large"], digests: "")
    // Sparse: long enough that its reading is seen.
    let size = 3 << 29
    #expect(truncate(scene.spool.path("files/large"), size) == 0)
    let path = scene.spool.path("done/job-0")
    let receipt = try readText(path)
    try writeFile(path, receipt.replacing("size=2 crc32", with: "size=\(size) crc32"))
    let line = "stty cols 79 rows 20; '\(scene.tools)/spoolrun' verify --spool '\(scene.spool.root)'"
    var environment = testEnvironment
    environment["TERM"] = "xterm"
    var output = ""
    // What draws the bar may stand still while the file is read: then once more.
    for _ in 0..<10 where !output.contains("0 of 1 files") {
      output = try await runInTerminal(line, environment: environment).output
    }
    #expect(output.contains("0 of 1 files") && output.contains("/1.50G"), "\(output)")
    // The bar is gone before the line is printed.
    let end = try #require(output.firstRange(of: "job-0: changed: large: expected crc32"))
    #expect(output[..<end.lowerBound].hasSuffix("\u{1B}[J") && !output[end.lowerBound...].contains("[="), "\(output)")
  }

  // MARK: lists

  /// Names that some reader or other takes for something else.
  private static let outputs = [
    "a", "d/b c", "back\\slash", "\\start", "-", ";semicolon", "#hash", "*star", "p (x) = y", "ab 12345678", "ü", "%41",
    "d/-x",
  ]

  /// What other programs find in the lists, in the directory of the payloads.
  @Test func listsForOthers() async throws {
    let scene = try await done(Self.outputs)
    let lists = [
      ("sha256", "sha256sum -c --strict"), ("sha512", "sha512sum -c --strict"), ("sha1", "sha1sum -c --strict"),
      ("md5", "md5sum -c --strict"), ("sfv", "cksfv -f"), ("crc32", "cksfv -f"),
      ("sha256 --tag", "sha256sum -c --strict"), ("sha512 --tag", "sha512sum -c --strict"),
      ("sha1 --tag", "sha1sum -c --strict"), ("md5 --tag", "md5sum -c --strict"),
    ]
    for (options, checker) in lists {
      let list = "'sums \(options)'"
      let line = "\"$spoolrun\" verify --spool \"$PWD\" --sums \(options) >\(list) && wc -l <\(list) && cd files && "
      let result = try await scene.shell("\(line)\(checker) ../\(list)").exits(0)
      #expect(result.output.hasPrefix("\(Self.outputs.count)\n"), "\(result)")
    }
    // And each is what it says.
    try scene.spool.write("files/d/b c", "rotten")
    for (options, checker) in lists {
      #expect(try await scene.shell("cd files && \(checker) '../sums \(options)'").status != .exited(0), "\(options)")
    }
  }

  /// It knows no escapes, and takes a backslash for a slash.
  @Test func listsForRhash() async throws {
    let scene = try await done(Self.outputs.filter { !$0.contains("\\") })
    for options in ["sha256", "sfv", "md5 --tag", "sfv --tag"] {
      let line = "\"$spoolrun\" verify --spool \"$PWD\" --sums \(options) >sums && cd files && rhash -c ../sums"
      try await scene.shell(line).exits(0)
    }
  }

  @Test func aReceiptWithoutTheDigestIsNamed() async throws {
    let scene = try await done(["a", "b", "c"])
    let path = scene.spool.path("done/job-1")
    let receipt = try readText(path)
    try writeFile(path, receipt.replacing(/\ sha256=\S+/, with: ""))
    // Nothing is read.
    #expect(unlink(scene.spool.path("files/c")) == 0)
    let result = try await scene.spoolrun("verify", "--sums", "sha256").exits(1)
    #expect(result.errors == "spoolrun: job-1: its receipt has no sha256\n")
    #expect(result.output.split(separator: "\n").map { $0.suffix(3) } == ["  a", "  c"])
    let one = try await scene.spoolrun("verify", "--sums", "sha256", "done/job-0", "nonsense")
    #expect(one.status == .exited(1) && one.output.split(separator: "\n").count == 1, "\(one)")
    #expect(one.errors == "spoolrun: nonsense: no such receipt in done\n")
  }

  /// Payloads elsewhere have absolute paths, unless all are said to be there.
  @Test func pathsOfPayloadsElsewhere() async throws {
    let scene = try await done(["a"], digests: "md5")
    let root = try TemporaryDirectory()
    try scene.spool.drop("job-1", "\(scene.server.url("/1"))\noutput: d/b\ndigests: md5\n")
    try await scene.spoolrun("--once", "-d", root.path).exits(0)
    func paths(_ options: String...) async throws -> [Substring] {
      try await scene.spoolrun(["verify", "--sums", "md5"] + options).output.split(separator: "\n").map {
        $0.dropFirst(34)
      }
    }
    #expect(try await paths() == ["a", "\(root.path)/d/b"])
    #expect(try await paths("-d", root.path) == ["a", "d/b"])
  }

  @Test(arguments: [["--tag"], ["--sums", "sha224"], ["--sums"]])
  func refused(options: [String]) async throws {
    let scene = try Scene.echoing()
    try await scene.spoolrun(["verify"] + options).exits(64)
  }

  /// A terminal gets no bytes that control it; a file gets the name as it is.
  @Test(.enabled("needs script(1)") { try await Need.terminal.isMet() })
  func namesThatSteerATerminal() async throws {
    let scene = try await done(["x\u{9b}31m"])
    #expect(try await scene.spoolrun("verify", "--sums", "md5").output.hasSuffix("  x\u{9b}31m\n"))
    let line = "'\(scene.tools)/spoolrun' verify --sums md5 --spool '\(scene.spool.root)'"
    #expect(try await runInTerminal(line).output.hasSuffix("  x\\xc2\\x9b31m\r\n"))
  }
}
