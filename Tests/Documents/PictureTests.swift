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

  /// CSS alone would do in browsers; other programs that draw SVG know only the attribute.
  @Test func `blanks stay as they are`() throws {
    let text = try SourceTree.lines("docs/terminal.svg").joined(separator: "\n")
    #expect(text.contains(" xml:space=\"preserve\"") && !text.contains("\u{A0}"))
    #expect(text.contains(">  JOB     "))
  }

  @Test func `size, time and rate of what is done agree`() throws {
    let shown = Self.shown(try SourceTree.lines("docs/terminal.svg"))
    let figures = shown.matches(of: /([0-9.]+)M in ([0-9.]+)s, ([0-9.]+)M\/s/)
    #expect(figures.count >= 2)
    for figure in figures {
      let (size, time, rate) = (Double(figure.1) ?? 0, Double(figure.2) ?? 0, Double(figure.3) ?? 0)
      #expect(abs(size / time - rate) < 0.1 * rate, "\(figure.0)")
    }
  }

  @Test(arguments: ["Killed", "spoolrun get", "done", "status --watch", "failed/: 1 failed", "partial/: 1 retrying"])
  func `it shows what README tells of it`(words: String) throws {
    let shown = Self.shown(try SourceTree.lines("docs/terminal.svg"))
    #expect(shown.contains(words), "\(shown)")
  }

  /// It is the only one for whoever wants no motion.
  @Test(arguments: ["cur/: 2 running", "failed/: 1 failed", "partial/: 1 retrying", "done/: 1 done", "q quit"])
  func `the last screen is that of --watch`(words: String) throws {
    let shown = Self.shown(try SourceTree.lines("docs/terminal.svg").filter { $0.contains(" z\" ") })
    #expect(shown.contains(words), "\(shown)")
  }

  private static func shown(_ lines: [String]) -> String {
    lines.map { $0.replacing(/<[^>]*>/, with: "") }.joined(separator: "\n")
  }
}
