import SystemPackage
import TestSupport
import Testing

@testable import Spool
@testable import SpoolLists
@testable import SpoolReport
@testable import SpoolStatus
@testable import SpoolWorker
@testable import Transfer

/// Text of strangers is bytes for whatever reads it. In Swift, a mark behind a delimiter hides it, and two spellings of
/// an accented letter are equal.
@Suite struct ForeignTextTests {
  private typealias Reader = @Sendable (String) throws -> [String?]

  /// What cuts text, and a text in which `§` is behind each delimiter.
  private static let readers: [(name: String, text: String, read: Reader)] = [
    ("shownURL", "https://§u:§p@§h/§a/§b?§q#§f", { [shownURL($0)] }),
    ("shownURL, no scheme", "u:§p@§h/§x", { [shownURL($0)] }),
    ("shownURL, malformed", "https://u:§p/§w@§h/§x", { [shownURL($0)] }),
    ("JobTarget", "https://u:§p@h:8?§q/§r", { [JobTarget(request($0)).server, JobTarget(request($0)).output] }),
    ("JobTarget, fragment", "https://h/§d/x#§f", { [JobTarget(request($0)).server, JobTarget(request($0)).output] }),
    ("JobText", "output:§a:§b@§c\nurl:§http://h/\n# §\nheader@h: X:§y\n", { [parsed($0).request.text] }),
    ("links", "url:§http://h/\nhttp://h/§", { try JobRequest(links: Array($0.utf8), isForURL: true).urls.map(\.text) }),
    (
      "Fields", "§a b=§c d=\"§e\" §f",
      { (Fields(parsing: $0)?.words ?? []) + (Fields(parsing: $0)?.named.map(\.value) ?? []) }
    ),
    (
      "URLParts", "https://u:§p@h/§a/§b?§q#§f",
      {
        let parts = try URLParts($0)
        return [parts.user, parts.password, parts.place, parts.query, parts.lastPathSegment]
      }
    ),
    ("Proxy", "http://u:§p@§h:1", { [Proxy($0).name, Proxy($0).scheme] }),
    ("Proxy, no host", "http://u:§p@", { [Proxy($0).name] }),
    ("Proxy, malformed", "http://u:§p/§w@§h", { [Proxy($0).name] }),
    (
      "no_proxy", "a,§h, h",
      { list in
        ["http://h/", "http://a/"].map { url in
          (try? URLParts(url)).flatMap { ProxyRules { ["http_proxy": "p:1", "no_proxy": list][$0] }.name(for: $0) }
        }
      }
    ),
    ("ContentDisposition", "attachment; filename=\"§a\"", { [ContentDisposition($0)?.filename] }),
    ("OutputPath", "§a/§b/../c", { [OutputPath($0)?.text, OutputPath.defect(of: $0)] }),
    ("PayloadName", "a/§b/§c", { [PayloadName.cleaned($0)] }),
    ("HeaderLine", "X-A:§v", { [try HeaderLine($0).text, try HeaderLine($0).name] }),
    (
      "RelinkedText", "output:§o\nurl:§http://h/a\nhttp://h/b\n",
      {
        let relinking = Relinking(to: ["http://i/"], shownURL: "", isSame: false) { $0.output?.text }
        return [String(decoding: relinking.applied(to: Array($0.utf8)), as: UTF8.self)]
      }
    ),
    (
      "JobRecord", "started: 2026-01-01T00:00:00Z attempt=1 url=https://§h/§x?§q\n",
      { text in
        [Array(text.utf8).withUnsafeBytes { JobRecord(FileName("a"), in: .done, bytes: $0, changed: .now()).host }]
      }
    ),
    ("native list", "http://h/§a?§q\n\nurl: http://h/\noutput:§x\n", { try listed($0, .native) }),
    ("aria2", "http://h/§a\n out=§b\n dir=./§c/§\n header=X:§y\n", { try listed($0, .aria2) }),
    ("sums", "\(md5)  §a\n\(md5) *§b\n\\\(md5)  §c\nMD5 (§d) = \(md5)\n", { try listed($0, .sums) }),
    ("sfv", "§a b 46EA081F\n", { try listed($0, .sfv) }),
    ("bagit", "http://h/§a 5 data/§b%25§c\n", { try listed($0, .bagit) }),
    ("ShellWords", "'§; rm '§", { [ShellWords.quoted(Array($0.utf8))] }),
    ("ListFormat.guess", ";§\na 46EA081F\n", { [ListFormat.guess(by: Array($0.utf8)).rawValue] }),
  ]

  private static let md5 = "b1946ac92492d2347c6235b4d2611184"

  private static func request(_ url: String) -> JobRequest { parsed("url: \(url)\n").request }

  private static func listed(_ text: String, _ format: ListFormat) throws -> [String?] {
    let options = ListOptions(format: format, base: "http://h/", ignoresUnknown: true)
    let list = try ListReader(contents: Array(text.utf8), options)
    var jobs: [String?] = []
    while let job = try list.next() { jobs += [job.directory, job.request.text] }
    return jobs
  }

  /// What a reader makes of a text, with `M` for the character behind each delimiter.
  private static func reading(_ read: Reader, _ text: String, _ character: String) throws -> String {
    let made = try read(bytewise(text, "§", character)).map { $0 ?? "nil" }.joined(separator: "|")
    // In each spelling.
    let bytes = Array(character.utf8)
    return [
      character, bytes.map { "%" + hexadecimal(UInt64($0), digits: 2).uppercased() }.joined(),
      bytes.map { "%" + hexadecimal(UInt64($0), digits: 2) }.joined(),
      bytes.map { "\\x" + hexadecimal(UInt64($0), digits: 2) }.joined(),
    ].reduce(made) { bytewise($0, $1, "M") }
  }

  private static func bytewise(_ text: String, _ old: String, _ new: String) -> String {
    String(decoding: Array(text.utf8).replacing(Array(old.utf8), with: Array(new.utf8)), as: UTF8.self)
  }

  @Test(arguments: readers.indices, ["\u{301}", "\u{200D}", "\u{FE0F}"])
  func `a mark behind a delimiter is like any other character there`(index: Int, mark: String) throws {
    let (name, text, read) = Self.readers[index]
    let expected = try Self.reading(read, text, "ü")
    #expect(try Array(Self.reading(read, text, mark).utf8) == Array(expected.utf8), "\(name): \(expected)")
  }

  /// What says whether two texts are the same.
  private static let comparisons: [(name: String, areSame: @Sendable (String, String) throws -> Bool)] = [
    ("ExactText", { $0.exact == $1.exact && Set([$0.exact, $1.exact]).count == 1 }),
    ("URL of a job", { request("http://h/\($0)") == request("http://h/\($1)") }),
    ("header", { parsed("header: X: \($0)\n").request == parsed("header: X: \($1)\n").request }),
    ("resolve", { parsed("resolve: \($0)\noutput: x\n").request == parsed("resolve: \($1)\noutput: x\n").request }),
    ("output", { OutputPath("d/\($0)") == OutputPath("d/\($1)") }),
    ("fields", { Fields().with("a", $0) == Fields().with("a", $1) }),
    (
      "names from URLs",
      { PayloadName.distinct([("a", "http://h/?\($0)"), ("a", "http://h/?\($1)")]).allSatisfy { $0 == "a" } }
    ),
    ("names", { PayloadName.distinct([($0, "http://h/1"), ($1, "http://h/2")])[0].utf8.count > $0.utf8.count }),
    (
      "outputs of jobs",
      {
        JobPlan.rootAndOutput(of: parsed("http://h/\($0)\n").request)
          == JobPlan.rootAndOutput(of: parsed("http://h/\($1)\n").request)
      }
    ),
    (
      "pinned output",
      { old, new in
        let relinking = Relinking(to: ["http://h/\(new)"], shownURL: "", isSame: false) { $0.urls.first?.text }
        return !relinking.applied(to: Array("http://h/\(old)\n".utf8)).contains("output".utf8)
      }
    ),
    (
      "subscription",
      { one, other in
        let fixture = try Fixture()
        _ = try Drops(fixture.spool).subscribe("url: http://h/\(one)\nevery: 1h\n", as: jobName("a"))
        return try JobSearch(fixture.spool).standingOrder(of: "http://h/\(other)") != nil
      }
    ),
    (
      "job of a feed's entry",
      { one, other in
        let fixture = try Fixture()
        let name = try jobName("a")
        _ = try Drops(fixture.spool).dropMissing([("url: http://h/\(one)\n", name)]) {}
        try fixture.files.move("new/a", "done/a")
        return try Drops(fixture.spool).dropMissing([("url: http://h/\(other)\n", name)]) {} == 0
      }
    ),
    (
      "publisher",
      { one, other in
        let fixture = try Fixture()
        try fixture.write("done/a", "http://h/\ndone: 2026-01-01T00:00:00Z output=\(one) \n")
        return try JobSearch(fixture.spool).publisher(of: other, in: nil, like: jobName("b")) != nil
      }
    ),
    (
      "Last-Modified",
      { one, other in
        func modified(_ text: String) throws -> String? {
          let head = ResponseHead(status: 200, fields: [(name: "last-modified", value: text)])
          return Response(head, from: try URLParts("http://h/"), now: 0).lastModified
        }
        return try modified(one).map { $0 == (try? modified(other)) } ?? (one == "a")
      }
    ),
  ]

  @Test(arguments: comparisons.indices)
  func `two spellings of an accented letter are two texts`(index: Int) throws {
    let (name, areSame) = Self.comparisons[index]
    #expect(try areSame("a", "a"), "\(name)")
    #expect(try !areSame("\u{E9}", "e\u{301}"), "\(name)")
  }

  @Test(arguments: [
    ("https://u:p@h:1/d/x?q#f", "https://h:1/d/x"), ("u:PW@h/x", "h/x"), ("https://h/@scope/x", "https://h/@scope/x"),
    ("https://u:p/w@h/x", "https://(malformed)"), ("https://u:p?w@h/x", "https://(malformed)"),
    ("https://u@v:p@h/x", "https://h/x"), ("https://[::1]:8/x", "https://[::1]:8/x"), ("x.iso", "x.iso"),
    ("https://h:80/x?mail=a@b", "https://h:80/x"), ("//u:PW@h/x", "//h/x"),
    ("u:PW@h/x://y", "h/x://y"), ("https:/u:PW@h/x", "(malformed)"), ("https:///u:PW@h/x", "https://(malformed)"),
    ("https:u:PW@h/x", "h/x"), ("https://u:PW", "https://u"), ("https://u%3APW%40h/x", "https://u/x"),
    ("\"https://u:PW@h/x", "\"https://h/x"), ("https:\\\\u:PW@h/x", "h/x"), ("https://h:80a/x", "https://h/x"),
  ])
  func `a URL is shown without its secrets, whatever its form`(url: String, shown: String) {
    #expect(shownURL(url) == shown)
  }
}
