import SpoolStatus
import Testing

@Suite struct LiveRegionTests {
  private let look = Look(isColored: false)

  private func lines(_ texts: String...) -> [StyledLine] { texts.map { StyledLine($0, look) } }

  @Test func `it is drawn over itself`() {
    var region = LiveRegion()
    #expect(region.isEmpty)
    #expect(region.draw(lines("one", "two"), columns: 80) == "\r\u{1B}[2Kone\n\u{1B}[2Ktwo\n\u{1B}[J")
    #expect(region.draw(lines("three"), columns: 80) == "\r\u{1B}[2A\u{1B}[2Kthree\n\u{1B}[J")
    #expect(region.erase(columns: 80) == "\r\u{1B}[1A\u{1B}[J")
    #expect(region.isEmpty)
  }

  @Test func `a log line goes above, after all was erased`() {
    var region = LiveRegion()
    _ = region.draw(lines("bar"), columns: 80)
    #expect(region.draw(lines("bar"), above: ["log"], columns: 80) == "\r\u{1B}[1A\u{1B}[Jlog\n\u{1B}[2Kbar\n\u{1B}[J")
  }

  @Test func `in a window that became narrower its lines have wrapped`() {
    var region = LiveRegion()
    _ = region.draw(lines(String(repeating: "x", count: 79), "", "short"), columns: 80)
    // 79 columns are 4 rows of 20; an empty line is one.
    #expect(region.erase(columns: 20).hasPrefix("\r\u{1B}[6A"))
  }

  @Test func `colours take no columns`() {
    var line = StyledLine(Look(isColored: true))
    line.append("red", .red)
    line.append(" plain ")
    #expect(line.width == 10)
    #expect(line.text == "\u{1B}[31mred\u{1B}[0m plain ")
    #expect(line.trimmed == "\u{1B}[31mred\u{1B}[0m plain")
    #expect(StyledLine("red", look, .red).text == "red")
  }
}
