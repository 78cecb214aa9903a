import Testing

@testable import Spool

/// Names of payloads that are decided before a job is dropped.
@Suite struct PayloadNameTests {
  private func distinct(_ wanted: (String, String)...) -> [String] {
    PayloadName.distinct(wanted.map { (name: $0.0, url: $0.1) })
  }

  @Test func `urls that give the same name get distinct ones, whatever their order`() {
    let (one, two) = (("data.tar.gz", "https://h/data.tar.gz?v=1"), ("data.tar.gz", "https://h/data.tar.gz?v=2"))
    let names = distinct(one, two, ("other", "https://h/other"))
    #expect(Set(names).count == 3 && names[2] == "other")
    for name in names[..<2] { #expect(name.wholeMatch(of: /data~[0-9a-f]{16}\.tar\.gz/) != nil, "\(name)") }
    #expect(distinct(("other", "https://h/other"), two, one) == [names[2], names[1], names[0]])
    #expect(!names.joined().contains("v="), "a query may hold secrets")
  }

  @Test func `the same url twice is one file`() {
    #expect(distinct(("a", "https://h/a"), ("a", "https://h/a")) == ["a", "a"])
  }

  @Test func `a directory keeps its name`() {
    let names = distinct(("d.d/a", "https://h/1/a"), ("d.d/a", "https://h/2/a"), ("a", "https://h/3/a"))
    #expect(names[0].hasPrefix("d.d/a~") && names[1].hasPrefix("d.d/a~") && names[0] != names[1] && names[2] == "a")
  }

  @Test func `a long name is cut, between characters`() {
    let long = String(repeating: "ü", count: 125) + ".iso"
    let names = distinct((long, "https://h/1"), (long, "https://h/2"))
    for name in names { #expect(name.utf8.count <= 255 && name.hasSuffix(".iso") && name.hasPrefix("üü"), "\(name)") }
  }

  @Test func `a name that another one would get is not given`() {
    let marked = distinct(("a", "https://h/1"), ("a", "https://h/2"))
    let names = distinct(("a", "https://h/1"), ("a", "https://h/2"), (marked[0], "https://h/3"))
    #expect(Set(names).count == 3, "\(names)")
  }

  @Test(
    arguments: [
      ("a.bin", "a.bin"), ("/etc/passwd", "passwd"), ("C:\\temp\\a.bin", "a.bin"), ("../../.bashrc", "bashrc"),
      ("..", nil), ("", nil), ("a/", nil), ("  a b.txt \t", "a b.txt"), ("-rf", "rf"), ("a\u{1b}[31m\r\nb", "a[31mb"),
      ("evil\u{202e}gpj.exe", "evilgpj.exe"), ("naïve.txt", "naïve.txt"), ("\u{7f}\u{85}", nil), ("a\u{fffd}b", "ab"),
      // A combining mark joins the slash before it for Swift, but not for the kernel.
      ("a/\u{301}b", "\u{301}b"),
    ] as [(String, String?)])
  func `a stranger's name is made safe`(text: String, expected: String?) {
    #expect(PayloadName.cleaned(text).map { Array($0.utf8) } == expected.map { Array($0.utf8) })
  }

  @Test func `a stranger's long name keeps its extension`() {
    let name = PayloadName.cleaned(String(repeating: "n", count: 400) + ".tar.gz")
    #expect(name?.utf8.count == 255 && name?.hasSuffix("n.tar.gz") == true)
  }

  @Test(
    arguments: [
      ("d/e/y", "y"), (".hidden", "hidden"), ("x.part", "x"), ("...part", "part"), ("--dash", "dash"), ("-", "job"),
      ("", "job"), (String(repeating: "n", count: 250), String(repeating: "n", count: 170)),
    ])
  func `a job's name is like its output's`(source: String, name: String) {
    #expect(JobName(like: source).display == name)
  }

  @Test func `a suffix is kept, however long the name`() {
    let whole = JobName(like: String(repeating: "\u{20AC}", count: 99), suffix: "-0123").fileName.bytes
    #expect(String(validating: whole, as: UTF8.self) != nil, "no character is cut")
    let name = JobName(like: String(repeating: "n", count: 250), suffix: "-0123")
    #expect(name.display.hasSuffix("n-0123") && name.fileName.bytes.count <= JobName.maximumLength)
  }
}
