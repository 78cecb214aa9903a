import Spool
import SpoolLists
import SystemPackage
import TestSupport
import Testing

/// What a standing order sees of the lists that it can watch.
@Suite struct FeedTests {
  private static let samples = "\(SourceTree.root)/Tests/Units/SpoolLists/Samples"
  private static let sum = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"

  private func read(_ text: String, _ format: EntryFormat? = nil) throws -> [FeedEntry] {
    try list(text, format).entries
  }

  private func list(_ text: String, _ format: EntryFormat? = nil) throws -> ReadList {
    try EntryList(contents: Array(text.utf8)).entries(format)
  }

  private func defect(_ bytes: [UInt8], _ format: EntryFormat? = nil) -> String {
    do {
      return "no defect: \(try EntryList(contents: bytes).entries(format))"
    } catch {
      return "\(error)"
    }
  }

  private func defect(_ text: String, _ format: EntryFormat? = nil) -> String { defect(Array(text.utf8), format) }

  private func sample(_ name: String, _ format: EntryFormat? = nil) throws -> [FeedEntry] {
    try EntryList(contents: readFile("\(Self.samples)/\(name)")).entries(format).entries
  }

  private func entry(_ id: String, _ date: String?, _ urls: String...) -> FeedEntry {
    FeedEntry(identity: id, date: date.flatMap { Timestamp($0) }, urls: urls)
  }

  @Test func `what the program prints is limited as well`() throws {
    let text = Array(repeating: "# entry: id=1\nurl: a\n\n", count: ReadList.mostEntries).joined()
    #expect(try ReadList(Array(text.utf8)).entries.count == ReadList.mostEntries)
    #expect(throws: Defect.self) { try ReadList(Array((text + "# entry: id=1\nurl: a\n\n").utf8)) }
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

  @Test(arguments: [
    ("https://c.example/f/", "a.mp3", "https://c.example/f/a.mp3"), ("https://c.example", "a", "https://c.example/a"),
    ("https://c.example/f?x/y#z", "a", "https://c.example/a"), ("//c.example/f/x", "/a", "//c.example/a"),
    ("https://c.example/f", "//d.example/a", "https://d.example/a"), ("up/x", "../a", "up/../a"),
    ("https://c.example/f/x?y", "?z", "https://c.example/f/x?z"), ("/f/", "http://h/a", "http://h/a"),
    ("x", "a:b", "a:b"), ("x", "./a:b", "./a:b"), ("https://c.example/f/\u{301}x", "a", "https://c.example/f/a"),
    ("", "a", "a"),
  ])
  func `URLs are relative to the nearest xml-base`(base: String, url: String, whole: String) throws {
    func feed(_ outer: String, _ inner: String, _ url: String) -> String {
      "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='\(outer)'><entry xml:base='http://other/'/>"
        + "<entry xml:base='\(inner)'><id>1</id><link rel='enclosure' href='\(url)'/></entry></feed>"
    }
    #expect(try read(feed(base, "", url)).map(\.urls) == [[whole]])
    #expect(try read(feed("https://c.example/x/", "y/", "a")).map(\.urls) == [["https://c.example/x/y/a"]])
    let file = "<file name='a' xml:base='https://c.example/m/'><url>b</url></file>"
    let metalink = try read("<metalink xmlns='urn:ietf:params:xml:ns:metalink'>\(file)</metalink>")
    #expect(metalink.map(\.urls) == [["https://c.example/m/b"]])
  }

  @Test func `bases inside each other do not grow without end`() throws {
    let base = String(repeating: "x/", count: 20_000)
    let feed = "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='\(base)'><entry xml:base='\(base)'/></feed>"
    #expect(defect(feed).contains("xml:base"))
  }

  @Test func `namespaces of RSS, and a relation of Atom written out`() throws {
    let item = "<channel><item><enclosure url='http://h/a'/></item></channel>"
    for name in ["http://backend.userland.com/rss2", "http://backend.userland.com/rss", "http://h/made-up"] {
      #expect(try read("<rss xmlns='\(name)'>\(item)</rss>").map(\.urls) == [["http://h/a"]])
    }
    let link = "<link rel='http://www.iana.org/assignments/relation/enclosure' href='http://h/a'/>"
    let feed = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>1</id>\(link)</entry></feed>"
    #expect(try read(feed).map(\.urls) == [["http://h/a"]])
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

  @Test func `a directory that the list gives is part of the name`() throws {
    let list = try read("url: http://h/a\noutput: sets/\n\nurl: http://h/b\n", .list)
    #expect(list.map(\.name) == ["sets/", nil] && list.map(\.identity) == ["sets/ http://h/a", "http://h/b"])
    func aria2(_ directory: String) -> String {
      "http://h/\(directory)\n  out=a\n  dir=\(directory)\n  checksum=sha-256=\(Self.sum)\n"
    }
    let found = try self.list(aria2("x/y") + aria2("z") + aria2("../z") + "http://h/b\n  dir=x\n")
    #expect(found.entries.map(\.name) == ["x/y/a", "z/a", "x/"] && Set(found.entries.map(\.key)).count == 3)
    #expect(found.problems.count == 1 && found.problems.reasons[0].contains("`../z/a` contains `..`"))
  }

  /// A line that cannot be read blocks no other, and is told.
  @Test(arguments: [
    ("\(Self.sum)   x\n", "the name ` x` begins or ends with a blank"),
    ("\(Self.sum)  x \n", "the name `x ` begins or ends with a blank"), ("\(Self.sum)  ../x\n", "the name `../x`"),
    ("colour: red\n", "no line of a list of checksums"), ("\(Self.sum.prefix(56))  x\n", "a checksum that is not one"),
  ])
  func `a line that cannot be used is left out, and told`(line: String, why: String) throws {
    let found = try list("\(Self.sum)  a\n\(line)\(Self.sum)  b\n")
    #expect(found.entries.map(\.name) == ["a", "b"] && found.problems.count == 1)
    #expect(found.problems.reasons[0].hasPrefix("line 2: \(why)"), "\(found.problems)")
  }

  @Test func `an entry that cannot be used takes none of the others away`() throws {
    let lines = try list("http://h/a\nhttp://h/1 b\nhttp://h/c\n")
    #expect(lines.entries.map(\.urls) == [["http://h/a"], ["http://h/c"]] && lines.problems.count == 1)
    #expect(lines.problems.reasons[0].hasPrefix("line 2: a blank in the URL"), "\(lines.problems)")
    let files = ["../a", "b"].map { "<file name='\($0)'><url>http://h/\($0)</url></file>\n" }
    let metalink = try list("<metalink>\(files.joined())</metalink>")
    #expect(metalink.entries.map(\.name) == ["b"] && metalink.problems.count == 1)
    // A page in place of the list.
    #expect(defect("Not here.\nSee\nhttp://h/\n", .list).hasPrefix("line 1: "))
  }

  @Test func `of a signed list nothing is left out`() throws {
    let signed = """
      -----BEGIN PGP SIGNED MESSAGE-----
      Hash: SHA512

      \(Self.sum)  a
      -----BEGIN PGP SIGNATURE-----

      iQIzBAEBCgAdFiEE
      -----END PGP SIGNATURE-----
      \(Self.sum)  b

      """
    let found = try list(signed)
    #expect(found.entries.map(\.name) == ["a", "b"] && found.problems.count == 0, "\(found.problems)")
  }

  @Test func `items without a file are told`() throws {
    let found = try list("<rss><channel><item><guid>1</guid></item><item/></channel></rss>")
    #expect(
      found.entries == []
        && found.problems.text == "1 problem: none of its 2 items has an enclosure, which is a link to a file")
    #expect(try list("<rss><channel/></rss>").problems.count == 0)
  }

  @Test func `items with one guid are several entries, unless they have the same URLs`() throws {
    func item(_ guid: String, _ urls: String...) -> String {
      "<item><guid>\(guid)</guid>\(urls.map { "<enclosure url='http://h/\($0)'/>" }.joined())</item>"
    }
    let items = item("1", "a", "b") + item("2", "c") + item("1", "d") + item("2", "c")
    let found = try read("<rss><channel>\(items)</channel></rss>")
    #expect(found.map(\.identity) == ["1 http://h/a", "1 http://h/a", "2", "1 http://h/d", "2"])
    #expect(found.map(\.sharedIdentity) == ["1", "1", nil, "1", nil])
  }

  @Test(arguments: [
    ("image/jpeg", "a.jpg", "audio/mpeg", "b"), ("", "a.png?x=.mp3", "", "b.mp3"), ("image/png", "a", "", "b.pdf"),
    ("application/x-bittorrent", "a.torrent", "video/mp4", "b"),
  ])
  func `sound and film come before pictures`(type: String, name: String, other: String, media: String) throws {
    let enclosures =
      "<enclosure type='\(type)' url='http://h/\(name)'/><enclosure type='\(other)' url='http://h/\(media)'/>"
    let found = try read("<rss><channel><item><guid>1</guid>\(enclosures)</item></channel></rss>")
    #expect(found.map(\.urls) == [["http://h/\(media)"], ["http://h/\(name)"]])
    // As before: without a guid it is known by its first URL.
    #expect(try read("<rss><channel><item>\(enclosures)</item></channel></rss>")[0].identity == "http://h/\(name)")
  }

  @Test func `RSS 1.0`() throws {
    let feed = """
      <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
        xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:enc="http://purl.oclc.org/net/rss_2.0/enc#">
      <channel rdf:about="http://h/"><items><rdf:Seq><rdf:li rdf:resource="http://h/1"/></rdf:Seq></items></channel>
      <item rdf:about="http://h/1"><dc:date>2026-11-01T00:00:00Z</dc:date>
        <enc:enclosure rdf:resource="http://h/1.mp3" enc:type="audio/mpeg"/></item>
      <item rdf:about="http://h/2"><enclosure url="http://h/2.mp3"/></item>
      </rdf:RDF>

      """
    let entries = [
      entry("http://h/1", "2026-11-01T00:00:00Z", "http://h/1.mp3"), entry("http://h/2", nil, "http://h/2.mp3"),
    ]
    #expect(try read(feed) == entries)
    #expect(try read(feed, .rss) == entries)
  }

  @Test func `of very many mirrors, those are kept that a job has room for`() throws {
    let urls = (0..<200_000).map { "<url priority='\(200_000 - $0)'>http://mirror\($0).example/pub/a.iso</url>" }
    let found = try read("<metalink><file name='a.iso'>\(urls.joined())</file></metalink>")
    #expect(found[0].urls[0] == "http://mirror199999.example/pub/a.iso" && found[0].urls.count > 500)
    #expect(try ReadList(Array(found[0].text!.utf8)).entries == found)
  }

  /// So that a page in place of the list never means that there is nothing new.
  @Test(arguments: [
    ("<!DOCTYPE html><html><p>gone</p></html>", "line 1: <html> is neither RSS, Atom, a docset feed nor Metalink"),
    ("<html><p>gone</p></html>", "line 1: <html> is neither RSS, Atom, a docset feed nor Metalink"),
    ("<rss><channel><item>", "line 1: XML: the text ends before </item>"),
    ("<rss><channel>\n<!-- </channel></rss>", "line 2: XML: the text ends within a tag"),
    ("<rss><![CDATA[</rss>", "line 1: XML: the text ends within CDATA"),
    ("<?xml version='1.0'?>", "XML: no element found"),
    ("<entry><url>http://h/a</url></entry>", "line 1: a docset feed without a version"),
    ("<entry><version>1</version></entry>", "line 1: a docset feed without a url"),
    ("gone\n", "line 1: neither a URL nor `key: value`"), ("http://h/a\nevery: 1s\n", "every"),
  ])
  func `what is no list`(text: String, reason: String) {
    #expect(defect(text).contains(reason), "\(defect(text))")
  }

  @Test func `what is no list of its format`() {
    #expect(defect("<rss/>", .atom) == "line 1: this is rss, but `entries:` says atom")
    #expect(defect("http://h/a\n", .rss).contains("XML"))
    #expect(defect("<html><p>gone</p></html>\n", .sums) == "no line is one of a list of checksums")
  }

  /// 128 digits may be SHA-512 or BLAKE2b. An order cannot say which, so they are SHA-512 if the name says nothing.
  @Test func `a list is read by its own name`() throws {
    func list(_ name: String) throws -> ReadList {
      let text = "\(String(repeating: "ab", count: 64))  a.iso\n"
      return try EntryList(contents: Array(text.utf8)).entries(nil, name: Array(name.utf8))
    }
    for name in ["", "sums", "SHA512SUMS"] { #expect(try list(name).entries[0].expected.digests[.sha512] != nil) }
    for name in ["b2sums", "B2SUMS.txt"] { #expect(try list(name).entries[0].expected.digests[.blake2b] != nil) }
    #expect { try list("b3sums") } throws: { "\($0)".contains("but b3sum by the list's name") }
  }

  @Test func `a feed that is cut gives nothing`() throws {
    let whole = try readFile("\(Self.samples)/podcast.rss")
    for length in [whole.count / 3, whole.count / 2, whole.count - 8] {
      #expect(defect(Array(whole[..<length]), .rss).contains("XML"))
    }
  }

  @Test func `no entity is expanded`() {
    var laughs = "<?xml version=\"1.0\"?>\n<!DOCTYPE rss [<!ENTITY a \"ha\">"
    for letter in "bcdefghij" {
      let before = Character(Unicode.Scalar(letter.unicodeScalars.first!.value - 1)!)
      laughs += "<!ENTITY \(letter) \"" + String(repeating: "&\(before);", count: 10) + "\">"
    }
    let why = "a DOCTYPE with entities, which no list needs"
    #expect(defect(laughs + "]><rss><channel>&j;</channel></rss>") == "line 2: \(why)")
    #expect(defect("<!DOCTYPE rss [\n<!entity % a SYSTEM 'file:///etc/passwd'> %a;]><rss/>") == "line 2: \(why)")
    #expect(defect("<!DOCTYPE metalink><metalink/>", .metalink) == "line 1: a DOCTYPE, which no list needs")
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
    #expect(try ReadList(Array(text.utf8)).entries == [entry, other])
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
    #expect(throws: Defect.self) { try ReadList(Array(text.utf8)) }
  }

  @Test func `a list of pieces is left out, and nothing with it`() throws {
    let text = "url: http://h/a\noutput: a\nsize: 5\nsha256: \(Self.sum)\n"
    let found = try #require(try read("\(text)pieces: sha256 1M \(Self.sum)\n", .list).first)
    #expect(found.expected.pieces == nil && found.text?.hasSuffix("\n\(text)\n") == true)
  }

  /// Of `bad-entries`, a person looks at the list.
  @Test(
    arguments: [
      (.read, .ioError, 74), (.read, .staleNFSFileHandle, 74), (.open, .noSuchFileOrDirectory, 66),
      (.write, .noSpace, 74), (.write, .fileTooLarge, 65),
    ] as [(Call.Kind, Errno, Int32)])
  func `the program blames the list for what is its own only`(call: Call.Kind, errno: Errno, status: Int32) {
    let failure = EntryList.failure(SpoolError(call: call, path: "x", errno: errno))
    #expect(failure.status == status && failure.reason.contains("more than 64 MiB") == (status == 65))
    let own = EntryList.failure(Defect(line: 3, reason: "x"))
    #expect(own.status == 65 && own.reason == "line 3: x")
  }

  /// As FreshRSS passes podcasts on. Beside an enclosure it says nothing new.
  @Test(arguments: [
    ("<media:content url='a.mp3' type='audio/mpeg'/>", ["a.mp3"]),
    ("<media:group><media:content url='t.jpg'/><media:content url='b.mp4'/></media:group>", ["b.mp4"]),
    ("<media:content url='a.mp3'/><enclosure url='c.mp3'/>", ["c.mp3"]),
    ("<media:content url='t' type='image/png'/><x:content xmlns:x='u' url='x.mp3'/>", []),
  ])
  func `media of items without an enclosure`(links: String, urls: [String]) throws {
    let item = "<item><guid>1</guid>\(links)</item>"
    let feed = "<rss xmlns:media='http://search.yahoo.com/mrss/'><channel>\(item)</channel></rss>"
    #expect(try read(feed).map(\.urls) == urls.map { [$0] })
  }

  @Test(arguments: [
    ("Sat, 07 Sep 2002 00:00:01 GMT", "2002-09-07T00:00:01Z"), ("7 Sep 02 09:42 -0130", "2002-09-07T11:12:00Z"),
    ("7 Sep 102 09:42 GMT", "2002-09-07T09:42:00Z"), ("Wed, 02 Oct 2002 08:00:00 EST", "2002-10-02T13:00:00Z"),
    ("Sat,07 September 1999 00:00:00 +0000", "1999-09-07T00:00:00Z"), ("31 Feb 2020 00:00:00 GMT", nil),
    ("yesterday", nil), ("", nil), ("Sat, 07 Sep 2002", nil), ("07 Sep 2002 99:00:00 GMT", nil),
    ("07 Sep 2002 00:00:00 CEST", "2002-09-07T00:00:00Z"), ("Sat, 07 Sep 2002 00:00:00 +01:00", "2002-09-06T23:00:00Z"),
    ("07 Sep 2002 00:00:00 +1", nil), ("2002-09-07T01:02:03.000Z", "2002-09-07T01:02:03Z"),
    ("2002-09-07 01:02:03 +0100", "2002-09-07T00:02:03Z"),
  ])
  func `dates of RSS`(text: String, date: String?) throws {
    let item = "<item><guid>1</guid><pubDate>\(text)</pubDate><enclosure url='http://h/a'/></item>"
    #expect(try read("<rss><channel>\(item)</channel></rss>")[0].date == date.flatMap { Timestamp($0) })
  }

  @Test(arguments: [
    ("2003-12-13T18:30:02Z", "2003-12-13T18:30:02Z"), ("2003-12-13t18:30:02.25+01:00", "2003-12-13T17:30:02Z"),
    ("2003-12-13T18:30+01:00", "2003-12-13T17:30:00Z"), ("2003-12-13T18:30:02", "2003-12-13T18:30:02Z"),
    ("2003-12-13", "2003-12-13T00:00:00Z"), ("2003-13-13T18:30:02Z", nil), ("2003-12", nil), ("13-12-2003", nil),
    ("2003-12-13T18:30:02+0x:00", nil),
  ])
  func `dates of Atom`(text: String, date: String?) throws {
    let entry = "<entry><id>1</id><updated>\(text)</updated><link rel='enclosure' href='http://h/a'/></entry>"
    let feed = "<feed xmlns='http://www.w3.org/2005/Atom'>\(entry)</feed>"
    #expect(try read(feed)[0].date == date.flatMap { Timestamp($0) })
  }
}
