import TestSupport
import Testing

/// The picture that README shows, as far as it must work on a page that allows an image and no more.
@Suite struct PictureTests {
  @Test func `it is one small file that moves by CSS alone`() throws {
    let bytes = try readFile("\(SourceTree.root)/docs/terminal.svg")
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(bytes.count < 200_000)
    for word in ["<script", "href", "@import", "url(", "<foreignObject"] { #expect(!text.contains(word), "\(word)") }
    #expect(text.contains("@media (prefers-reduced-motion:reduce){.a{animation:none!important}}"))
    #expect(text.contains("step-end infinite"))
  }

  @Test(arguments: ["Killed", "spoolrun get", "done", "status --watch", "failed (1)", "retrying (1)"])
  func `it shows what README tells of it`(words: String) throws {
    let shown = Self.shown(try SourceTree.lines("docs/terminal.svg"))
    #expect(shown.contains(words), "\(shown)")
  }

  /// It is the only one for whoever wants no motion.
  @Test(arguments: ["running (2)", "failed (1)", "retrying (1)", "done (1)", "q quit"])
  func `the last screen is that of --watch`(words: String) throws {
    let shown = Self.shown(try SourceTree.lines("docs/terminal.svg").filter { $0.contains(" z\" ") })
    #expect(shown.contains(words), "\(shown)")
  }

  private static func shown(_ lines: [String]) -> String {
    lines.map { $0.replacing(/<[^>]*>/, with: "").replacing("\u{A0}", with: " ") }.joined(separator: "\n")
  }
}
