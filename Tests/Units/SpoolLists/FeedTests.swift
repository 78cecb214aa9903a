import Spool
import SpoolLists
import TestSupport
import Testing

/// What a standing order sees of the lists that it can watch.
@Suite struct FeedTests {
  private static let samples = "\(SourceTree.root)/Tests/Units/SpoolLists/Samples"
  private static let sum = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"

  private func read(_ text: String, _ format: EntryFormat? = nil) throws -> [FeedEntry] {
    try EntryList.read(contents: Array(text.utf8), format)
  }

  private func defect(_ bytes: [UInt8], _ format: EntryFormat? = nil) -> String {
    do {
      return "no defect: \(try EntryList.read(contents: bytes, format))"
    } catch {
      return "\(error)"
    }
  }

  private func defect(_ text: String, _ format: EntryFormat? = nil) -> String { defect(Array(text.utf8), format) }

  private func sample(_ name: String, _ format: EntryFormat? = nil) throws -> [FeedEntry] {
    try EntryList.read(contents: readFile("\(Self.samples)/\(name)"), format)
  }

  private func entry(_ id: String, _ date: String?, _ urls: String...) -> FeedEntry {
    FeedEntry(identity: id, date: date.flatMap { Timestamp($0) }, urls: urls)
  }

  @Test(arguments: [nil, EntryFormat.rss]) func `a podcast with elements of iTunes`(format: EntryFormat?) throws {
    #expect(
      try sample("podcast.rss", format) == [
        entry(
          "tides-0003", "2026-11-16T05:00:00Z",
          "https://media.tides.example/audio/003-storm-surges.mp3?src=feed&v=2"),
        entry("tides-0002", "2026-11-09T05:00:00Z", "https://media.tides.example/audio/002-moon.mp3"),
        // Without a guid, the URL is all there is.
        entry("/audio/001-ebb.mp3", "2026-11-02T11:00:00Z", "/audio/001-ebb.mp3"),
      ])
  }

  @Test(arguments: [nil, EntryFormat.atom]) func `an Atom feed, with alternatives`(format: EntryFormat?) throws {
    let (id, date) = ("tag:data.example,2026:/releases/2", "2026-11-20T08:30:00Z")
    #expect(
      try sample("releases.atom", format) == [
        entry(id, date, "https://data.example/files/r2.tar.gz"), entry(id, date, "https://data.example/files/r2.zip"),
        entry("tag:data.example,2026:/releases/1", "2026-05-01T00:00:00Z", "files/r1.tar.gz"),
      ])
  }

  @Test(arguments: [nil, EntryFormat.docset]) func `a docset with mirrors`(format: EntryFormat?) throws {
    let urls = ["sanfrancisco", "newyork", "london"].map { "http://\($0).docs.example/feeds/Lua.tgz" }
    var docset = FeedEntry(identity: "Lua.tgz 5.4.7/2", urls: urls)
    docset.replaces = true
    #expect(try sample("docset.xml", format) == [docset])
  }

  @Test func `lists are relative to their own URL, and known by name and digest`() throws {
    let sums = try read("# made by hand\n\(Self.sum)  a/x y.iso\n\(Self.sum) *b.iso\n")
    #expect(sums.map(\.identity) == ["a/x y.iso \(Self.sum)", "b.iso \(Self.sum)"])
    #expect(sums.map(\.urls) == [["./a/x%20y.iso"], ["./b.iso"]])
    #expect(sums.map(\.name) == ["a/x y.iso", "b.iso"] && sums[0].expected.provesContent)
    let list = try read("http://h/a\nhttp://h/b\n\nurl: http://h/c\nurl: http://i/c\noutput: d/c\nsize: 5\n")
    #expect(list.map(\.identity) == ["http://h/a", "http://h/b", "d/c http://h/c http://i/c"])
    #expect(list.map(\.name) == [nil, nil, "d/c"] && list[2].expected.size == 5)
    let metalink = try sample("four.meta4")
    #expect(!metalink.isEmpty && metalink.allSatisfy { $0.name != nil })
  }

  /// The job of such a file would be for another one, or for none.
  @Test(arguments: [" ", " x", "x "]) func `a name that a job cannot have is left out`(name: String) throws {
    #expect(try read("\(Self.sum)  a\n\(Self.sum)  \(name)\n").map(\.name) == ["a"])
  }

  /// So that a page in place of the list never means that there is nothing new.
  @Test(arguments: [
    ("<!DOCTYPE html><html><p>gone</p></html>", "line 1: a DOCTYPE, which no list needs"),
    ("<html><p>gone</p></html>", "line 1: <html> is neither RSS 2.0, Atom, a docset feed nor Metalink"),
    ("<rss><channel><item>", "line 1: XML: no element found"),
    ("<rss><channel></rss>", "line 1: XML: mismatched tag"),
    ("<rss/><rss/>", "line 1: XML: junk after document element"),
    ("<entry><url>http://h/a</url></entry>", "line 1: a docset feed without a version"),
    ("<entry><version>1</version></entry>", "line 1: a docset feed without a url"),
    ("gone\n", "line 1: neither a URL nor `key: value`"),
    ("http://h/a\nevery: 1s\n", "every"),
  ])
  func `what is no list`(text: String, reason: String) {
    #expect(defect(text).contains(reason), "\(defect(text))")
  }

  @Test func `what is no list of its format`() {
    #expect(defect("<rss/>", .atom) == "line 1: this is rss, but `entries:` says atom")
    #expect(defect("http://h/a\n", .rss).contains("XML"))
    #expect(defect("<html><p>gone</p></html>\n", .sums) == "no line is one of a list of checksums")
  }

  @Test func `a feed that is cut or not UTF-8 gives nothing`() throws {
    let whole = try readFile("\(Self.samples)/podcast.rss")
    for length in [whole.count / 3, whole.count / 2, whole.count - 8] {
      #expect(defect(Array(whole[..<length]), .rss).contains("XML"))
    }
    var wrong = whole
    wrong[300] = 0xFF
    #expect(defect(wrong).contains("XML: not well-formed"))
  }

  @Test func `no entity is expanded`() {
    var laughs = "<?xml version=\"1.0\"?>\n<!DOCTYPE rss [<!ENTITY a \"ha\">"
    for letter in "bcdefghij" {
      let before = Character(Unicode.Scalar(letter.unicodeScalars.first!.value - 1)!)
      laughs += "<!ENTITY \(letter) \"" + String(repeating: "&\(before);", count: 10) + "\">"
    }
    #expect(defect(laughs + "]><rss><channel>&j;</channel></rss>") == "line 2: a DOCTYPE, which no list needs")
    #expect(defect("<!DOCTYPE rss SYSTEM \"file:///etc/passwd\"><rss/>") == "line 1: a DOCTYPE, which no list needs")
    #expect(defect("<rss>&nbsp;</rss>").contains("XML: undefined entity"))
  }

  /// Show notes are long, and deep.
  @Test func `long text is passed over`() throws {
    let notes = String(repeating: "<b>", count: 100) + String(repeating: "text ", count: 50_000)
    let item =
      "<item><guid>1</guid><enclosure url='http://h/a'/><x>\(notes)\(String(repeating: "</b>", count: 100))</x></item>"
    #expect(try read("<rss><channel>\(item)</channel></rss>").map(\.identity) == ["1"])
    #expect(defect("<rss>\(String(repeating: "<a>", count: 300))").contains("elements more than 256 deep"))
    let (long, longer) = (String(repeating: "x", count: 1_000_000), String(repeating: "x", count: 1_200_000))
    #expect(try read("<rss><channel><!--\(long)--></channel></rss>") == [])
    #expect(try read("<rss><channel><x>\(longer)</x></channel></rss>") == [])
    for markup in ["<!--\(longer)-->", "<a b='\(longer)'/>", "<\(longer)/>"] {
      #expect(defect("<rss>\(markup)</rss>").contains("a tag or comment of over 1 MiB"))
    }
    let id = String(repeating: "x", count: 70_000)
    #expect(defect("<rss><channel><item><guid>\(id)</guid></item></channel></rss>").contains("over 64 KiB of text"))
  }

  @Test func `the text of an entry is read back, whatever is in it`() throws {
    var entry = FeedEntry(
      identity: "a \"b\"\n\\ \u{202E}ü \(String(repeating: "long", count: 10))",
      date: Timestamp("2026-01-02T03:04:05Z"),
      name: "d/x y", urls: ["./x%20y", "http://h/?a=b c"])
    entry.expected.size = 5
    entry.expected.digests[.sha256] = Digest(.sha256, Self.sum)
    entry.replaces = true
    let other = FeedEntry(identity: String(repeating: "x", count: 600), urls: ["http://h/a"])
    let text = try #require(entry.text) + #require(other.text)
    #expect(try FeedEntry.read(Array(text.utf8)) == [entry, other])
    #expect(other.identity.utf8.count < 80 && entry.key.count == 16 && entry.key != other.key)
    // Such a list is one for `spoolrun add --from`, too.
    let list = try ListReader(contents: Array(text.utf8), ListOptions())
    #expect(try list.next()?.request.output?.text == "d/x y")
    for url in ["", "http://h/\nsize: 5", "http://h/\u{7F}"] {
      #expect(FeedEntry(identity: "a", urls: [url]).text == nil)
    }
  }

  @Test(arguments: [
    "\n", "url: http://h/a\n", "# entry: id=\"\nurl: http://h/a\n", "# entry: id=1\n", "# entry: id=1\nx\n",
  ])
  func `what the program does not print`(text: String) {
    #expect(throws: Defect.self) { try FeedEntry.read(Array(text.utf8)) }
  }

  @Test(arguments: [
    ("Sat, 07 Sep 2002 00:00:01 GMT", "2002-09-07T00:00:01Z"), ("7 Sep 02 09:42 -0130", "2002-09-07T11:12:00Z"),
    ("Wed, 02 Oct 2002 08:00:00 EST", "2002-10-02T13:00:00Z"),
    ("Sat,07 September 1999 00:00:00 +0000", "1999-09-07T00:00:00Z"),
    ("31 Feb 2020 00:00:00 GMT", nil), ("yesterday", nil), ("", nil), ("Sat, 07 Sep 2002", nil),
    ("07 Sep 2002 99:00:00 GMT", nil), ("07 Sep 2002 00:00:00 MARS", nil),
  ])
  func `dates of RSS`(text: String, date: String?) throws {
    let item = "<item><guid>1</guid><pubDate>\(text)</pubDate><enclosure url='http://h/a'/></item>"
    #expect(try read("<rss><channel>\(item)</channel></rss>")[0].date == date.flatMap { Timestamp($0) })
  }

  @Test(arguments: [
    ("2003-12-13T18:30:02Z", "2003-12-13T18:30:02Z"), ("2003-12-13t18:30:02.25+01:00", "2003-12-13T17:30:02Z"),
    ("2003-12-13T18:30:02", nil), ("2003-13-13T18:30:02Z", nil), ("2003-12-13", nil),
    ("2003-12-13T18:30:02+0x:00", nil),
  ])
  func `dates of Atom`(text: String, date: String?) throws {
    let entry = "<entry><id>1</id><updated>\(text)</updated><link rel='enclosure' href='http://h/a'/></entry>"
    let feed = "<feed xmlns='http://www.w3.org/2005/Atom'>\(entry)</feed>"
    #expect(try read(feed)[0].date == date.flatMap { Timestamp($0) })
  }
}
