import Spool
import SpoolLists
import TestSupport
import Testing

/// What each format of lists says, and what is refused in which line.
@Suite struct ListFormatTests {
  private static let samples = "\(SourceTree.root)/Tests/Units/SpoolLists/Samples"
  private static let md5 = "b1946ac92492d2347c6235b4d2611184"
  private static let sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"

  /// The jobs' texts, each with its directory in front.
  private func jobs(_ list: ListReader) throws -> [String] {
    var jobs: [String] = []
    while let job = try list.next() { jobs.append((job.directory.map { "[\($0)] " } ?? "") + job.request.text) }
    return jobs
  }

  private func jobs(_ text: String, _ options: ListOptions = ListOptions(base: "http://h/d")) throws -> [String] {
    try jobs(ListReader(contents: Array(text.utf8), options))
  }

  /// The first thing that is wrong.
  private func defect(_ list: @autoclosure () throws -> ListReader) -> String {
    do {
      let list = try list()
      let jobs = try jobs(list)
      return list.problems.named.first.map { "\($0)" } ?? "no defect: \(jobs)"
    } catch {
      return "\(error)"
    }
  }

  private func defect(_ text: String, _ options: ListOptions = ListOptions(base: "http://h/d")) -> String {
    defect(try ListReader(contents: Array(text.utf8), options))
  }

  @Test(arguments: [
    ("http://h/a\n", ListFormat.native), ("# c\n\nurl: http://h/a\n", .native), ("", .native), ("foo\n", .native),
    ("http://h/a\n output: x\n", .native), ("http://h/a\thttp://i/a\n", .aria2), ("http://h/a\n  out=x\n", .aria2),
    ("\(sha256)  a\n", .sums), ("\\\(md5) *a\n", .sums), ("SHA256 (a) = \(sha256)\n", .sums),
    ("# c\nSHA2-256(a)= \(sha256)\n", .sums), ("; c\na 46EA081F\n", .sfv), ("a b.bin 46ea081f\n", .sfv),
    ("\u{FEFF}<?xml version=\"1.0\"?><metalink/>", .metalink), ("  <metalink/>", .metalink),
    ("http://h/a 5 data/a\n", .bagit), ("http://h/a - data/a b\n", .bagit),
  ])
  func `told by its looks`(text: String, format: ListFormat) throws {
    let options = ListOptions(base: "http://h/", ignoresUnknown: true)
    #expect(try ListReader(contents: Array(text.utf8), options).format == format)
  }

  @Test func `URLs, and jobs between blank lines`() throws {
    let text = """
      http://h/a
      # a comment
      http://h/b

      # two mirrors
      url: http://h/c
      url: http://i/c
      output: d/c

      http://h/e
      size: 5\r
      done: 2026-01-01T00:00:00Z attempts=1
      """
    #expect(
      try jobs(text) == [
        "url: http://h/a\n", "url: http://h/b\n", "url: http://h/c\nurl: http://i/c\noutput: d/c\n",
        "url: http://h/e\nsize: 5\n",
      ])
  }

  @Test(arguments: [
    ("http://h/a\nhttp://h/b\noutput: b\n", "line 3: after several URLs"),
    ("http://h/a\tb\nsize: 5\n", "line 2: after a URL and a file name"),
    ("output: b\nhttp://h/a\nhttp://h/b\n", "line 1: several bare URLs"),
    ("http://h/a b\n", "line 1: a blank in the URL"),
    ("magnet:?xt=urn:btih:0\n", "line 1: the scheme of a magnet link"),
    ("http://h/a.bin,a.bin,300\n", "line 1: it looks like a line of a table"),
    ("http://h/a.bin;\(sha256)\n", "line 1: it looks like a line of a table"),
    ("url,name,size\n", "line 1: neither a URL nor `key: value`; it looks like a line of a table"),
    ("http://h/a\t300\n", "line 1: it looks like a line of a table"),
    ("http://h/a\n\n\n# c\nurl: http://h/b\nsiez: 5\n", "line 6: unknown key"),
    ("http://h/a\n\noutput: x\n", "line 3: no URL"), ("http://h/a\nfoo\n", "line 2: neither"),
    ("http://h/a\n\nhttp://h/b\n size=5\n", "line 4: an option as in aria2"),
    ("url: http://h/a\noutput: ../x\n", "line 2: output: contains `..`"),
    ("http://h/a\n\u{1b}[2J\n", "line 2: control bytes"),
  ])
  func `a native list is refused in a line`(text: String, reason: String) {
    #expect(defect(text, ListOptions(format: .native)).hasPrefix(reason))
  }

  @Test func `keys behind a URL that cannot be used are no other URL's`() throws {
    let text = "http://h/a\nhttp://h/b c\noutput: d\nhttp://h/e\n\nhttp://h/f g\nsize: 5\n\nhttp://h/h\nsize: 6\n"
    let options = ListOptions(format: .native, ignoresUnknown: true)
    #expect(try jobs(text, options) == ["url: http://h/a\n", "url: http://h/e\n", "url: http://h/h\nsize: 6\n"])
  }

  @Test(arguments: ["htps:/h/b", "www.h/b", "//h/b", "www.h/\u{1}"])
  func `keys behind what may be a URL are dropped with it`(line: String) throws {
    let options = ListOptions(format: .native, ignoresUnknown: true)
    let text = "http://h/a\n\(line)\noutput: b\nsize: 5\nhttp://h/c\n\n\(line)\noutput: b\nhttp://h/d\n"
    #expect(try jobs(text, options) == ["url: http://h/a\n", "url: http://h/c\n", "url: http://h/d\n"])
  }

  /// They may be meant for the URL, which must not be fetched without its digest.
  @Test func `a URL is not used where it is not certain whose the keys behind it are`() throws {
    let text = "http://h/a\nthe second one\nmd5: \(Self.md5)\n\nhttp://h/b\nthe third one\nhttp://h/c\n"
    #expect(try jobs(text, ListOptions(format: .native)) == ["url: http://h/b\n", "url: http://h/c\n"])
  }

  @Test func `comments make no job too long`() throws {
    let comments = String(repeating: "# \(String(repeating: "x", count: 98))\n", count: 2000)
    #expect(try jobs("http://h/a\n\(comments)http://h/b\n") == ["url: http://h/a\n", "url: http://h/b\n"])
    let short = String(repeating: "#\n", count: 40_000)
    #expect(try jobs("http://h/a\n\(short)output: b\n\(short)size: 5\n") == ["url: http://h/a\noutput: b\nsize: 5\n"])
    #expect(defect("http://h/a\n\(short)siez: 5\n").hasPrefix("line 40002: unknown key"))
  }

  @Test func `what aria2 saved`() throws {
    let options = ListOptions(ignoresUnknown: true)
    let expected = [
      "[sub] url: http://127.0.0.1:9/c.bin\nuser-agent: x\nreferer: http://h/\n",
      "url: http://127.0.0.1:9/d.bin\n",
      """
      url: http://127.0.0.1:9/a.bin
      url: http://127.0.0.1:9/m/a.bin
      output: x/a.bin
      sha256: b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c
      header: X-A: b

      """,
    ]
    #expect(try jobs(ListReader(Array("\(Self.samples)/aria2-session.txt".utf8), options)) == expected)
    let zipped = try jobs(ListReader(Array("\(Self.samples)/aria2-session.txt.gz".utf8), options))
    #expect(zipped.map { $0.replacing("[out] ", with: "") } == expected)
    #expect(
      try jobs("http://h/a\t \t http://i/a\t\n out=y\n") == ["url: http://h/a\nurl: http://i/a\noutput: y\n"],
      "tabs and blanks without a mirror")
  }

  @Test(arguments: [
    (" out=x\nhttp://h/a\n", "line 1: an option before"),
    ("http://h/a\n max-tries=5\n", "line 2: the option `max-tries`"),
    ("http://h/a\n out\n", "line 2: neither"), ("http://h/a\n checksum=adler32=1\n", "line 2: checksum: must be TYPE"),
    ("http://h/a\n checksum=md5=1\n", "line 2: checksum: must be 32"),
    ("http://h/a\n\n\nhttp://h/b\n out=../x\n", "line 4: the name `../x` contains `..`"),
    ("http://h/a\n header=Range: 1\n", "line 2: header: range is set by the worker"),
    ("http://h/a\n referer=*\n", "line 2: the option `referer`"),
  ])
  func `aria2's list is refused in a line`(text: String, reason: String) {
    #expect(defect(text, ListOptions(format: .aria2)).hasPrefix(reason))
  }

  /// Its place in the list tells what may be lost with it.
  @Test(arguments: [
    (
      ListFormat.aria2, "http://h/a\n out=x\nhttp://h/?\n out=y\nhttp://h/c\n",
      ["http://h/a\noutput: x", "http://h/c"], 1
    ),
    (.aria2, "http://h/a\n out=?\n checksum=md5=1\nhttp://h/c\n", ["http://h/c"], 2),
    (.aria2, "http://h/a\n # ?\n out=x\n", ["http://h/a\noutput: x"], 1),
    (.native, "http://h/a\nhttp://h/?\noutput: y\n\nhttp://h/c\n", ["http://h/a", "http://h/c"], 1),
    (.native, "http://h/a\noutput: x\nsha256: ?\nsize: 5\n\nhttp://h/c\n", ["http://h/c"], 2),
    (.native, "http://h/a\nsize: 5\nwww.h/?\noutput: x\n\nhttp://h/c\n", ["http://h/c"], 2),
    (.native, "output: x\nsha256: ?\nhttp://h/a\n\nhttp://h/c\n", ["http://h/c"], 2),
    (.native, "http://h/a\nhttp://h/b\nCaf?\nhttp://h/c\n", ["http://h/a", "http://h/b", "http://h/c"], 1),
    (.native, "Titre ?\nhttp://h/a\noutput: x\n", ["http://h/a\noutput: x"], 1),
    (.native, "http://h/a\n# ?\noutput: x\n", ["http://h/a\noutput: x"], 1),
    (.sums, "\(md5)  a\n\(md5)  ?\n", ["http://h/d/a\noutput: a\nmd5: \(md5)"], 1),
  ])
  func `a line that cannot be read changes no other job`(
    format: ListFormat, text: String, kept: [String], problems: Int
  ) throws {
    for byte: UInt8 in [0xE9, 0x01] {
      let bytes = text.utf8.map { $0 == UInt8(ascii: "?") ? byte : $0 }
      let list = try ListReader(contents: bytes, ListOptions(format: format, base: "http://h/d"))
      #expect(try jobs(list) == kept.map { "url: \($0)\n" })
      #expect(list.problems.count == problems, "\(list.problems)")
    }
  }

  @Test func `checksums as programs print them`() throws {
    func job(_ name: String, _ digests: String, url: String? = nil) -> String {
      "url: http://h/d/\(url ?? name)\noutput: \(name)\n\(digests)\n"
    }
    #expect(
      try jobs("\(Self.sha256)  ./x/a b\n\\\(Self.md5) *a\\\\b\n# c\n\n")
        == [
          job("x/a b", "sha256: \(Self.sha256)", url: "x/a%20b"), job("a\\b", "md5: \(Self.md5)", url: "a%5Cb"),
        ])
    #expect(
      try jobs(
        "MD5   (a (1)) = \(Self.md5)\nSHA2-256(a (1))= \(Self.sha256)\n"
          + "SHA256 (ü) = WJG1tSLV3whtD/CxEPvZ0hu0/HFjrzTQgoai6Eb2vgM=\n")
        == [
          job("a (1)", "sha256: \(Self.sha256)\nmd5: \(Self.md5)", url: "a%20%281%29"),
          job("ü", "sha256: \(Self.sha256)", url: "%C3%BC"),
        ])
    #expect(
      try jobs("; cksfv\r\nd/a b   46ea081f\r\n") == [job("d/a b", "crc32: 46EA081F", url: "d/a%20b")])
    #expect(
      try jobs("\(Self.md5)  a\nSHA224 (a) = 12\nfoo\n", ListOptions(base: "http://h/d/", ignoresUnknown: true))
        == [job("a", "md5: \(Self.md5)")])
  }

  @Test(arguments: [
    ("\(md5)  a\nfoo\n", "line 2: no line of a list"), ("\(md5)  -\n", "line 1: `-` is the standard input"),
    ("\(md5)  ../a\n", "line 1: the name `../a` contains `..`"), ("\(md5)  /a\n", "line 1: the name `/a` is absolute"),
    ("\\\(md5)  a\\nb\n", "line 1: the name `a\\x0ab` contains control bytes"),
    ("\(md5)  a\nMD5 (a) = d3b07384d113edec49eaa6238ad5ff00\n", "line 2: two different values of md5"),
    ("SHA224 (a) = 12\n", "line 1: a checksum that is not one of"), ("; c\nfoo\n", "line 2: must be a file's name"),
  ])
  func `a list of checksums is refused in a line`(text: String, reason: String) {
    #expect(defect(text).hasPrefix(reason), "\(defect(text))")
  }

  @Test func `a third digest does not bring back a file whose digests contradict each other`() throws {
    let text = "\(Self.md5)  a\nd3b07384d113edec49eaa6238ad5ff00  a\n\(Self.md5)  a\n\(Self.md5)  b\n\(Self.md5)  a\n"
    let list = try ListReader(contents: Array(text.utf8), ListOptions(base: "http://h/", ignoresUnknown: true))
    #expect(try jobs(list) == ["url: http://h/b\noutput: b\nmd5: \(Self.md5)\n"] && list.problems.count == 1)
  }

  @Test func `the preference of a mirror may be any number`() throws {
    let text = """
      <metalink xmlns="http://www.metalinker.org/"><files><file name="a"><resources>
        <url preference="-9223372036854775808">http://h/a</url><url preference="2">http://i/a</url>
        </resources></file></files></metalink>
      """
    #expect(try jobs(text) == ["url: http://i/a\nurl: http://h/a\noutput: a\n"])
  }

  @Test func `a gzipped list in memory`() throws {
    let zipped = try readFile("\(Self.samples)/aria2-session.txt.gz")
    let options = ListOptions(ignoresUnknown: true)
    #expect(
      try jobs(ListReader(contents: zipped, options)).count
        == jobs(ListReader(Array("\(Self.samples)/aria2-session.txt".utf8), options)).count)
  }

  @Test func `checksums need to know where the files are`() {
    #expect(defect("\(Self.md5)  a\n", ListOptions()).contains("--base URL"))
  }

  @Test(arguments: ["four.meta4", "three.metalink"])
  func `Metalink 4 and 3`(sample: String) throws {
    let list = try ListReader(Array("\(Self.samples)/\(sample)".utf8), ListOptions())
    #expect(list.format == .metalink)
    // By priority, of web servers alone, and the strongest digest.
    #expect(
      try jobs(list) == [
        """
        url: http://a.example/big.bin
        url: http://b.example/big.bin
        output: big.bin
        size: 300000
        sha256: 886715e4051e827f4fe215df3053af3f85ad0d352db2c829c7487af6d78efe30

        """
      ])
  }

  @Test func `of a Metalink file only its own elements count`() throws {
    let text = """
      <metalink xmlns="urn:ietf:params:xml:ns:metalink" xmlns:o="urn:o"><file name="d/a">
        <o:url>http://o/a</o:url><url> ftp://h/a
        </url><pieces length="1" type="sha-1"><hash>00</hash></pieces><metaurl mediatype="torrent">http://h/t</metaurl>
        <hash type="sha-224">00</hash><hash type="md5">\(Self.md5)</hash></file></metalink>
      """
    #expect(try jobs(text) == ["url: ftp://h/a\noutput: d/a\nmd5: \(Self.md5)\n"])
  }

  @Test(arguments: [
    ("<!DOCTYPE m [<!ENTITY a \"b\">]>\n<metalink>&a;</metalink>", "line 1: a DOCTYPE"),
    ("<html>\n</html>", "line 1: XML, but no Metalink"),
    ("<metalink>\n<file name=\"a\"></file></metalink>", "line 2: the file `a`"),
    (
      "<metalink><file name=\"a\"><hash type=\"md5\">\(md5)</hash>\n<hash type=\"md5\">\(md5.uppercased())</hash>\n"
        + "<hash type=\"md5\">d3b07384d113edec49eaa6238ad5ff00</hash></file></metalink>",
      "line 3: two different values of md5"
    ),
    ("<metalink>\n<file></file></metalink>", "line 2: a file without a name"),
    ("<metalink>\n", "line 2: XML: no element found"),
    ("<metalink>\n</metalinc>", "line 2: XML: mismatched tag"), ("<metalink>&a;", "line 1: XML: undefined entity"),
    (
      "<metalink><file name=\"../a\">\n<url>http://h/a</url></file></metalink>", "line 1: the name `../a` contains `..`"
    ),
    ("<metalink><file name=\"a\">\n<hash type=\"md5\">0</hash></file></metalink>", "line 2: hash: must be 32"),
    (String(repeating: "<metalink>", count: 40), "line 1: elements more than 32 deep"),
  ])
  func `a Metalink file is refused in a line`(text: String, reason: String) {
    #expect(defect(text, ListOptions(format: .metalink)).hasPrefix(reason), "\(defect(text))")
  }

  @Test func `a bag's files, with the digests of its manifest`() throws {
    let list = try ListReader(Array("\(Self.samples)/bag/fetch.txt".utf8), ListOptions())
    #expect(
      try jobs(list) == [
        "url: http://h.example/a\noutput: data/a.bin\nsize: 6\nsha256: \(Self.sha256)\n",
        """
        url: http://h.example/b%20c
        output: data/sub/per%cent and blank.txt
        sha256: 73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac

        """,
      ])
  }

  @Test func `the name of a bag's manifest has no hyphen`() throws {
    let directory = try TemporaryDirectory()
    try writeFile("\(directory.path)/fetch.txt", Array("http://h/a - data/a\n".utf8))
    try writeFile("\(directory.path)/manifest-sha3256.txt", Array("\(Self.sha256)  data/a\n".utf8))
    let list = try ListReader(Array("\(directory.path)/fetch.txt".utf8), ListOptions())
    #expect(try jobs(list) == ["url: http://h/a\noutput: data/a\nsha3-256: \(Self.sha256)\n"])
  }

  @Test func `a bag without the file in its manifest, or without a manifest`() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/fetch.txt"
    try writeFile(path, Array("http://h/a 5 data/a\nhttp://h/b 5 data/b%0Ac\n".utf8))
    #expect(defect(inFile: path).hasPrefix("there is no manifest-sha256.txt"))
    try writeFile("\(directory.path)/manifest-md5.txt", Array("\(Self.md5)  data/a\n".utf8))
    #expect(defect(inFile: path) == "line 2: the name `data/b\\x0ac` contains control bytes")
    try writeFile(path, Array("http://h/a 5 data/a\nhttp://h/b 5 data/b\n".utf8))
    #expect(defect(inFile: path) == "line 2: `data/b` is not in manifest-md5.txt")
    try writeFile("\(directory.path)/manifest-md5.txt", Array("\(Self.md5)  data/a\nfoo\n".utf8))
    #expect(defect(inFile: path) == "manifest-md5.txt: line 2: must be the MD5 and the path of a file")
    try writeFile(path, Array("http://h/a 5 data/a\n".utf8))
    let marked = [0xEF, 0xBB, 0xBF] + Array("\(Self.md5)  data/a\n".utf8)
    try writeFile("\(directory.path)/manifest-md5.txt", marked + marked[3...])
    #expect(
      try jobs(ListReader(Array(path.utf8), ListOptions())) == [
        "url: http://h/a\noutput: data/a\nsize: 5\nmd5: \(Self.md5)\n"
      ], "a byte order mark, and a line twice")
    try writeFile(
      "\(directory.path)/manifest-md5.txt", marked + Array("d3b07384d113edec49eaa6238ad5ff00  data/a\n".utf8))
    #expect(
      defect(inFile: path) == "manifest-md5.txt: line 2: two different values of md5 for `data/a`")
    try writeFile(path, Array("http://h/a 5 bagit.txt\n".utf8))
    try writeFile("\(directory.path)/manifest-md5.txt", [])
    #expect(defect(inFile: path) == "line 1: a path that is not below data/: a bag fetches only its payload")
  }

  private func defect(inFile path: String) -> String { defect(try ListReader(Array(path.utf8), ListOptions())) }

  @Test func `damaged gzip, and lines without end`() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/list"
    var bytes = try readFile("\(Self.samples)/aria2-session.txt.gz")
    try writeFile(path, Array(bytes.dropLast(12)))
    #expect(defect(inFile: path) == "the gzipped data ends too early")
    for (behind, isDamage) in [
      ([0x61, 0x61], true), ([0, 0, 0x61, 0x61], true), (Array(bytes[1...]), true), ([0, 0, 0], false), (bytes, false),
    ] {
      try writeFile(path, bytes + behind)
      #expect((defect(inFile: path) == "the gzipped data is damaged") == isDamage, "\(defect(inFile: path))")
    }
    bytes[20] ^= 0xFF
    try writeFile(path, bytes)
    #expect(defect(inFile: path) == "the gzipped data is damaged")
    try writeFile(path, [UInt8](repeating: 0x61, count: 200_000))
    #expect(defect(inFile: path) == "line 1: a line of over 64 KiB: a list is plain text")
  }

  @Test func `a name that several jobs want is contested, in whatever order`() {
    for wanted in [["a", "b", "a"], ["a", "a", "b"], ["b", "a", "a", "a"]] {
      var names = ListNames()
      for name in wanted { names.want(Fingerprint(name)) }
      #expect(names.isContested(Fingerprint("a")) && !names.isContested(Fingerprint("b")))
    }
  }

  @Test func `an output that the list gives is no other job's`() {
    for isFixedFirst in [true, false] {
      var outputs = ListOutputs()
      func note(_ job: String, _ isFixed: Bool) -> ListOutputs.Finding {
        outputs.note(Fingerprint("a"), of: Fingerprint(job), isFixed: isFixed)
      }
      #expect(note("1", isFixedFirst) == .new && !outputs.isContested(Fingerprint("a")))
      #expect(note("2", !isFixedFirst) == .new && outputs.isContested(Fingerprint("a")))
      #expect(note("3", true) == .taken && note("4", false) == .new)
      for job in ["1", "2", "3", "4"] { #expect(note(job, true) == .repeated) }
      #expect(!outputs.give(Fingerprint("a")) && outputs.give(Fingerprint("c")) && !outputs.give(Fingerprint("c")))
    }
  }

  @Test func `a line break in a url of xml is refused`() {
    let text = """
      <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="a"><url>http://h/a
      output: b</url></file></metalink>
      """
    #expect(defect(text) == "line 2: url: a line break, or another control character")
  }
}
