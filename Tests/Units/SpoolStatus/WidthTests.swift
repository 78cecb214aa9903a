import Glibc
import SpoolStatus
import Testing

@Suite struct WidthTests {
  @Test(arguments: [
    ("", 0), ("plain.iso", 9), ("日本", 4), ("한글", 4), ("e\u{301}", 1), ("é", 1), ("👍", 2), ("👍🏽", 4), ("🇩🇪", 2),
    ("ｆｕｌｌ", 8), ("ｶﾅ", 2), ("a\u{200B}b", 2), ("\u{1100}\u{1161}\u{11A8}", 2), ("…", 1), ("ضاد", 3), ("𠀀", 2),
    ("☺", 1), ("⌚", 2), ("\\x1b", 4),
  ])
  func `text takes the columns that a terminal gives it`(text: String, width: Int) {
    #expect(displayWidth(text) == width, "\(text)")
  }

  @Test func `each assigned character is as wide as the C library says`() {
    // Glibc's module leaves wcwidth(3) out.
    guard let symbol = dlsym(nil, "wcwidth") else { return }
    let wcwidth = unsafeBitCast(symbol, to: (@convention(c) (wchar_t) -> Int32).self)
    guard let locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil) else { return }
    let old = uselocale(locale)
    defer {
      uselocale(old)
      freelocale(locale)
    }
    var differing = 0
    var all = 0
    for value in UInt32(0x20)...0x3FFFD {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let width = wcwidth(wchar_t(bitPattern: value))
      // -1: a control, or a character that the library is too old for.
      guard width >= 0, scalar.properties.generalCategory != .unassigned else { continue }
      all += 1
      if displayWidth(scalar) != Int(width) { differing += 1 }
    }
    #expect(all > 100_000)
    // Versions of Unicode differ a little.
    #expect(differing < 200, "\(differing) of \(all)")
  }

  @Test(arguments: [
    ("survey.tar", 10, "survey.tar"), ("survey.tar", 9, "surv….tar"), ("survey.tar", 2, "s…"), ("survey.tar", 1, "…"),
    ("survey.tar", 0, ""),
    ("日本語の名前", 7, "日…前"), ("e\u{301}e\u{301}e\u{301}e\u{301}", 3, "e\u{301}…e\u{301}"), ("🇩🇪🇫🇷🇮🇹", 5, "🇩🇪…🇮🇹"),
  ])
  func `a long name gives way in its middle, between whole characters`(name: String, width: Int, expected: String) {
    #expect(fitted(name, to: width) == expected)
    #expect(displayWidth(fitted(name, to: width)) <= width)
  }

  @Test func `a long sentence is cut at its end`() {
    #expect(clipped("no data for 60 s", to: 8) == "no data…")
    #expect(clipped("no data", to: 7) == "no data")
    #expect(clipped("no data", to: 5, ellipsis: "~") == "no d~")
    // What takes no column does not stay at the end.
    #expect(clipped("no data\u{200B}", to: 5) == "no d…")
  }

  @Test func `padding counts columns, not characters`() {
    #expect(padded("日本", to: 6) == "日本  ")
    #expect(padded("7", to: 3, left: true) == "  7")
    #expect(padded("long", to: 2) == "long")
  }
}
