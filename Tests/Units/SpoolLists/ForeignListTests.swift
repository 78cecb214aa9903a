import Spool
import SpoolLists
import TestSupport
import Testing

/// Lists as other programs and people write them: what is plain is read, and the rest is refused by name.
@Suite struct ForeignListTests {
  private static let md5 = "b1946ac92492d2347c6235b4d2611184"
  private static let sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
  private static let digits128 = String(repeating: "5891b5b522d5df08", count: 8)

  private func read(_ bytes: [UInt8], name: String? = nil, _ format: ListFormat? = nil) throws -> (
    jobs: [String], problems: ListProblems
  ) {
    var options = ListOptions(format: format, base: "http://h")
    options.name = name.map { Array($0.utf8) }
    let list = try ListReader(contents: bytes, options)
    var jobs: [String] = []
    while let job = try list.next() { jobs.append(job.request.text) }
    return (jobs, list.problems)
  }

  private func read(_ text: String, name: String? = nil, _ format: ListFormat? = nil) throws -> (
    jobs: [String], problems: ListProblems
  ) { try read(Array(text.utf8), name: name, format) }

  private func sum(_ name: String, _ digest: String) -> String { "url: http://h/\(name)\noutput: \(name)\n\(digest)\n" }

  // MARK: which digest it is

  @Test(arguments: [
    "b3sums.txt", "B3SUMS.gz", "a.iso.b3", "sha3-512.txt", "SHA3-512SUMS", "a.whirlpool",
  ])
  func `digests of another kind are not taken for SHA-512`(name: String) throws {
    let (jobs, problems) = try read("\(Self.digits128)  a\n", name: name)
    #expect(jobs == [] && problems.named.first?.reason.contains("by the list's name") == true, "\(problems)")
  }

  @Test(arguments: ["B3SUMS", "b3sum.txt", "sha3-384sums", "a.b3", "blake3.txt", "a.sm3"])
  func `nor for SHA-256`(name: String) throws {
    #expect(try read("\(Self.sha256)  a\n", name: name).jobs == [])
  }

  @Test(
    arguments: [
      ("SHA512SUMS", nil), ("a.sha512", nil), ("sha512sum.txt", nil), ("my-SHA512SUMS.gz", nil), (nil, .sha512),
      ("list", .sha512), ("b2.SHA512SUMS", nil),
    ] as [(String?, ListFormat?)])
  func `as long as two kinds, a digest needs a name or a format`(name: String?, format: ListFormat?) throws {
    #expect(try read("\(Self.digits128)  a\n", name: name, format).jobs == [sum("a", "sha512: \(Self.digits128)")])
    let unnamed = try read("\(Self.digits128)  a\n", name: "checksums.txt")
    #expect(unnamed.jobs == [] && unnamed.problems.named.first?.reason.contains("--format sha512") == true)
    #expect(
      try read("SHA512 (a) = \(Self.digits128)\n").jobs == [sum("a", "sha512: \(Self.digits128)")], "the line names it")
  }

  @Test(arguments: ["b2sums.txt", "B2SUMS", "a.b2", "list.blake2b", "blake2.txt"])
  func `BLAKE2b by the list's name or by the line`(name: String) throws {
    let job = [sum("a", "blake2b: \(Self.digits128)")]
    #expect(try read("\(Self.digits128)  a\n", name: name).jobs == job)
    #expect(try read("BLAKE2b (a) = \(Self.digits128)\n", name: "list").jobs == job)
    #expect(try read("\(Self.digits128)  a\n", name: "list", .blake2b).jobs == job)
    // b2sum -l 256 makes digests of that length.
    let short = try read("\(Self.sha256)  a\n", name: name)
    #expect(short.jobs == [] && short.problems.named.first?.reason.contains("another length") == true)
  }

  @Test func `SHA3-256 by the list's name`() throws {
    #expect(try read("\(Self.sha256)  a\n", name: "sha3-256sums").jobs == [sum("a", "sha3-256: \(Self.sha256)")])
  }

  @Test func `a list's name that happens to name an algorithm does no harm`() throws {
    for name in ["build-sha1a2b3.txt", "md5-and-more", "sha3f2a1.txt", "ghost.txt", "app-1.0b2.txt"] {
      #expect(try read("\(Self.sha256)  a\n", name: name).jobs == [sum("a", "sha256: \(Self.sha256)")], "\(name)")
    }
  }

  // MARK: forms of lines

  @Test(arguments: [
    ("\(md5) a\n\(md5) b c\n", ["a", "b%20c"]), ("\(md5)\ta\n", ["a"]), ("  \(md5)  a\n", ["a"]),
    ("\(md5) *d\\a\n", ["d/a"]), ("\(md5)  .\\d\\a\n", ["d/a"]), ("; c\r\nd\\a 46ea081f\r\n", ["d/a"]),
  ])
  func `blanks and backslashes of other systems`(text: String, paths: [String]) throws {
    let (jobs, problems) = try read(text)
    #expect(jobs.map { $0.split(separator: "\n")[0] } == paths.map { "url: http://h/\($0)" }, "\(problems)")
  }

  @Test func `what gpg prints`() throws {
    let long = "averylongnameofmorethanfortycharactersinall.tar.gz"
    let text = """
      f: 5891B5B5 22D5DF08 6D0FF0B1 10FBD9D2 1BB4FC71 63AF34D0 8286A2E8 46F6BE03
      \(long):\u{20}
      B1 94 6A C9 24 92 D2 34  7C 62 35 B4 D2 61 11 84
      g:    MD5 = B1 94 6A C9 24 92 D2 34  7C 62 35 B4 D2 61 11 84
      g: RMD160 = 5891 B5B5 22D5 DF08 6D0F  F0B1 10FB D9D2 1BB4 FC71
      g: SHA256 = 5891B5B5 22D5DF08 6D0FF0B1 10FBD9D2
                  1BB4FC71 63AF34D0 8286A2E8 46F6BE03

      """
    let expected = [
      sum("f", "sha256: \(Self.sha256)"), sum(long, "md5: \(Self.md5)"),
      sum("g", "sha256: \(Self.sha256)\nmd5: \(Self.md5)"),
    ]
    let (jobs, problems) = try read(text)
    #expect(jobs == expected && problems.count == 0, "\(problems)")
    let lines = text.split(separator: "\n")
    #expect(try read(lines[1...2].joined(separator: "\n")).jobs == [expected[1]], "told by its second line")
    #expect(try read(lines[3...6].joined(separator: "\n")).jobs == [expected[2]])
  }

  @Test(arguments: ["../x", "g"]) func `what gpg prints of a bad entry takes no other along`(bad: String) throws {
    let rest = "5891B5B5 22D5DF08 6D0FF0B1 10FBD9D2\n  1BB4FC71 63AF34D0 8286A2E8 46F6BE03\n"
    // Two digests of one file contradict each other.
    let text = "\(Self.md5)  g\n\(Self.sha256.prefix(32))  g\nf: \(rest)\(bad): \(rest)h: \(rest)"
    let (jobs, problems) = try read(text, .sums)
    #expect(jobs == ["f", "h"].map { sum($0, "sha256: \(Self.sha256)") }, "\(problems)")
    #expect(problems.count == (bad == "g" ? 1 : 2), "\(problems)")
  }

  @Test func `a digest alone is of the file that the list is called like`() throws {
    #expect(try read("\(Self.sha256)\n", name: "a.iso.sha256").jobs == [sum("a.iso", "sha256: \(Self.sha256)")])
    #expect(try read("\(Self.md5)\n", name: "a.iso.md5.txt").jobs == [sum("a.iso", "md5: \(Self.md5)")])
    for name in [nil, "SHA256SUMS", "list"] {
      let (jobs, problems) = try read("\(Self.sha256)\n", name: name)
      #expect(jobs == [] && problems.named.first?.reason.hasPrefix("a digest without the name of a file") == true)
    }
  }

  // MARK: text

  @Test(arguments: [true, false], [true, false])
  func `a list in UTF-16`(isLittle: Bool, hasMark: Bool) throws {
    func encoded(_ text: String) -> [UInt8] {
      ((hasMark ? [0xFEFF] : []) + Array(text.utf16)).flatMap {
        isLittle ? [UInt8($0 & 0xFF), UInt8($0 >> 8)] : [UInt8($0 >> 8), UInt8($0 & 0xFF)]
      }
    }
    #expect(
      try read(encoded("\(Self.md5)  ü😀\r\n")).jobs == [
        "url: http://h/%C3%BC%F0%9F%98%80\noutput: ü😀\nmd5: \(Self.md5)\n"
      ])
    // Pairs of surrogates at each place of a block's end.
    for start in ["", "x", "xx"] {
      let urls = (0..<3000).map { "http://h/\(start)\(String(repeating: "😀", count: 20))\($0)" }
      #expect(try read(encoded(urls.joined(separator: "\n"))).jobs == urls.map { "url: \($0)\n" })
    }
    #expect(throws: Defect.self) { try read(Array(encoded("http://h/a\n").dropLast())) }
  }

  @Test func `a tab parts a URL from its name`() throws {
    let (jobs, problems) = try read("http://h/?1\ta b\nhttp://h/c\n# c\nhttp://h/?2 \t d/e\n")
    #expect(
      jobs == ["url: http://h/?1\noutput: a b\n", "url: http://h/c\n", "url: http://h/?2\noutput: d/e\n"]
        && problems.count == 0)
  }

  @Test(arguments: [
    "http://h/a,b.html", "http://h/0,1518,123,00.html", "http://h/tile,1,2.png", "http://h/maps/@52.5,13.4,15z",
    "http://h/a;jsessionid=5", "http://h/get?x=1,2,3", "http://h/v1,300",
  ])
  func `commas and semicolons are part of a URL`(url: String) throws {
    #expect(try read("\(url)\n").jobs == ["url: \(url)\n"])
  }

  @Test(arguments: [
    "http://www.metalinker.org/", "https://www.metalinker.org/", "http://www.metalinker.org", "urn:x", "",
  ])
  func `a Metalink file names its vocabulary in many ways`(namespace: String) throws {
    let text = """
      <metalink xmlns="\(namespace)" xmlns:o="urn:o"><files><file name="a"><o:size>5</o:size>
      <resources><url>http://h/a</url></resources></file></files></metalink>
      """
    #expect(try read(text).jobs == ["url: http://h/a\noutput: a\n"])
  }

  // MARK: what cannot be used

  @Test(arguments: [
    (
      "http://h/a\nfoo\nhttp://h/b\nmagnet:?xt=1\nhttp://h/c d\nhttp://h/e\n\u{1}\nhttp://h/f\n", ["a", "b", "e", "f"],
      4
    ),
    (
      "http://h/a\nhttp://h/b\noutput: x\nsize: 5\nhttp://h/c\n\nurl: http://h/d\nsiez: 5\n\nhttp://h/e\n",
      ["a", "c", "e"], 2
    ),
    ("http://h/a\n out=x\n max-tries=5\nhttp://h/b\n header=Range: 1\n split=2\nhttp://h/c\n", ["a", "c"], 2),
    ("\(md5)  a\nfoo\n\(md5)  ../b\n\(md5)  c\nMD5 (c) = \(sha256.prefix(32))\n\(md5)  d\n", ["a", "d"], 3),
  ])
  func `a line that cannot be used costs no other`(text: String, left: [String], problems: Int) throws {
    let (jobs, found) = try read(text)
    #expect(jobs.map { $0.split(separator: "\n")[0] } == left.map { "url: http://h/\($0)" }, "\(found)")
    #expect(found.count == problems, "\(found)")
  }

  @Test func `a file of a Metalink that cannot be used costs no other`() throws {
    let text = """
      <metalink><file name="../a"><url>http://h/a</url></file><file name="b"><hash type="md5">0</hash>
      <url>http://h/b</url></file><file name="c"><url>http://h/c</url></file><file name="d"></file></metalink>
      """
    let (jobs, problems) = try read(text)
    #expect(jobs == ["url: http://h/c\noutput: c\n"] && problems.count == 3, "\(problems)")
  }

  @Test func `of many only the first are kept`() throws {
    let problems = try read((0..<1000).map { "foo \($0)\n" }.joined()).problems
    #expect(problems.count == 1000 && problems.named.map(\.line) == Array(1...10))
  }
}
