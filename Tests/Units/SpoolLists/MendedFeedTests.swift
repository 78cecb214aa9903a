import Spool
import SpoolLists
import TestSupport
import Testing

/// Feeds that are no XML, or in another charset than they say: what can be read is, and the rest is told.
@Suite struct MendedFeedTests {
  private static let item = "<item><guid>9</guid><enclosure url='http://h/9.mp3'/></item>"

  private func read(_ text: String, head: String = "<?xml version=\"1.0\"?>") throws -> ReadList {
    try read(Array("\(head)<rss><channel>\(text)\(Self.item)</channel></rss>\n".utf8))
  }

  private func read(_ bytes: [UInt8]) throws -> ReadList { try EntryList(contents: bytes).entries(nil) }

  /// - Parameters:
  ///   - inner: what is in the channel.
  ///   - problem: the first; nil if nothing has to be mended.
  @Test(arguments: [
    ("<title>a&nbsp;b</title>", "line 1, byte 44: &nbsp;, which XML does not have"),
    ("<title>AT&T</title>", "line 1, byte 45: a raw &"), ("<title>&#1;</title>", "line 1, byte 43: &#1;, which"),
    ("<title>a < b</title>", "line 1, byte 45: a raw <"), ("\n\n<a>\u{1}</a>", "line 3, byte 4: a control character"),
    ("<itunes:x/>", "line 1, byte 36: the prefix itunes without a namespace"),
    ("<a xmlns:i='y'><i:x/></a><i:x/>", "line 1, byte 61: the prefix i without a namespace"),
    ("<a b=c/>", "line 1, byte 41: an attribute without quotes"),
    ("<a b='1' b='2'/>", "line 1, byte 45: two attributes"),
    ("<a b/>", "line 1, byte 39: an attribute without a value"),
    ("<a><b></a>", "line 1, byte 42: </a>, where </b> is missing"),
    ("</a>", "line 1, byte 36: </a> without a beginning"), ("<a>]]></a>", nil), ("<a><![CDATA[<b>&nbsp;]]></a>", nil),
    ("<!-- a -- <b> --><?php x > y ?>", nil), ("<a x:b='&lt;&#x26;&#38;' xmlns:x='y'>&amp;\r\n&quot;</a>", nil),
  ])
  func `a mistake costs nothing else`(inner: String, problem: String?) throws {
    let found = try read(inner)
    #expect(found.entries.map(\.identity) == ["9"])
    #expect(found.problems.count == (problem == nil ? 0 : 1), "\(found.problems)")
    if let problem { #expect(found.problems.reasons[0].hasPrefix(problem), "\(found.problems)") }
  }

  /// Of this URL a parser that recovers by itself makes another one.
  @Test func `a raw & in a URL stays`() throws {
    let found = try read("<item><enclosure url=\"http://h/a?x=1&y=2&amp;z=3&copy=1&nbsp;\"/></item>")
    #expect(found.entries[0].urls == ["http://h/a?x=1&y=2&z=3&copy=1&nbsp;"] && found.problems.count == 3)
  }

  @Test func `a mistake is found in one long line`() throws {
    let long = String(repeating: "x", count: 300_000)
    let found = try read("<title>\(long)&\(long)\n&nbsp;</title>")
    #expect(
      found.problems.reasons == [
        "line 1, byte 300043: a raw &", "line 2, byte 1: &nbsp;, which XML does not have",
      ])
  }

  @Test(arguments: ["\n\n", "\u{FEFF}", "\u{FEFF}\n ", "Warning: x in y on line 3\n"])
  func `what is before a feed is passed over`(before: String) throws {
    let found = try read("", head: before + "<?xml version=\"1.0\" encoding=\"utf-8\"?>")
    #expect(found.entries.count == 1 && found.problems.count == (before.hasPrefix("W") ? 1 : 0))
  }

  @Test(arguments: [
    "<!DOCTYPE rss>", "<!doctype rss SYSTEM \"file:///etc/passwd\">",
    "<!DOCTYPE rss PUBLIC '-//Netscape Communications//DTD RSS 0.91//EN' 'http://h/rss-0.91.dtd'>",
    "<!DOCTYPE rss [<!ELEMENT rss ANY> <!ATTLIST rss version CDATA '>'>]>",
  ])
  func `a document type without entities is passed over`(doctype: String) throws {
    let found = try read("", head: "<?xml version='1.1'?>\n\(doctype)\n")
    #expect(found.entries.count == 1 && found.problems.count == 0)
  }

  /// `Привет`, `é`, `€`, `你好` and `“`.
  @Test(arguments: [
    ("windows-1251", [0xCF, 0xF0, 0xE8, 0xE2, 0xE5, 0xF2], "Привет"), ("Windows-1252", [0x93, 0xE9], "“é"),
    ("KOI8-R", [0xF0, 0xD2, 0xC9, 0xD7, 0xC5, 0xD4], "Привет"), ("ISO-8859-15", [0xA4, 0xE9], "€é"),
    ("iso-8859-1", [0x93, 0xE9], "“é"), ("GB2312", [0xC4, 0xE3, 0xBA, 0xC3], "你好"),
    ("Shift_JIS", [0x82, 0xB1], "こ"), ("us-ascii", [0x78], "x"), ("UTF-16", [0x78], "x"), ("utf8", [0x78], "x"),
    ("EUC-JP", [0xA4, 0xB3], "こ"), ("Big5", [0xA7, 0x41], "你"),
  ])
  func `a feed in another charset`(charset: String, bytes: [UInt8], text: String) throws {
    let head = "<?xml version=\"1.0\" encoding=\"\(charset)\"?><rss><channel><item><guid>"
    let tail = "</guid><enclosure url=\"/1\"/></item></channel></rss>"
    let found = try read(Array(head.utf8) + bytes + Array(tail.utf8))
    #expect(found.entries.map(\.identity) == [text] && found.problems.count == 0, "\(found)")
  }

  @Test(arguments: [true, false]) func `UTF-16, with and without its mark`(isMarked: Bool) throws {
    let text = "\(isMarked ? "\u{FEFF}" : "")<rss><channel>\(Self.item)</channel></rss>"
    for isBig in [true, false] {
      let bytes = text.utf16.flatMap {
        isBig ? [UInt8($0 >> 8), UInt8($0 & 0xFF)] : [UInt8($0 & 0xFF), UInt8($0 >> 8)]
      }
      #expect(try read(bytes).entries.map(\.identity) == ["9"])
    }
  }

  @Test(arguments: ["utf-8", "x-unknown", "ISO-2022-CN-EXT", "../../x"])
  func `a byte that is none of the charset is told`(charset: String) throws {
    let head = Array("<?xml version='1.0' encoding='\(charset)'?>\n<rss><channel><title>caf".utf8)
    let found = try read(head + [0xE9] + Array("</title>\(Self.item)</channel></rss>".utf8))
    #expect(found.entries.map(\.identity) == ["9"])
    #expect(found.problems.reasons.last == "line 2, byte 25: a byte that is not of its charset", "\(found.problems)")
    #expect(found.problems.count == (charset == "utf-8" ? 1 : 2))
  }

  /// Blocks end anywhere.
  @Test func `blocks change nothing`() throws {
    let text = "<a b='&amp;'>&lt;\u{2603}&nbsp;</a><![CDATA[x]]]>\r\n<!-- y -->" + Self.item
    let pad = 65_536 - 40
    for shift in 0..<110 {
      let found = try read("<t>" + String(repeating: ".", count: pad + shift) + "</t>" + text, head: "")
      #expect(found.entries.map(\.identity) == ["9", "9"] && found.problems.count == 1, "\(shift)")
    }
  }
}
