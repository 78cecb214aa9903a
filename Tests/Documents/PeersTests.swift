import TestSupport
import Testing

/// README.md shows a part of what `make peers` wrote.
@Suite struct PeersTests {
  @Test func `the table of other tools is that of PEERS.md`() throws {
    let isRow: (String) -> Bool = { $0.hasPrefix("|") }
    let shown = try SourceTree.lines("README.md").drop { !$0.hasPrefix("| tool |") }.prefix(while: isRow)
    let written = try SourceTree.lines("Tests/Torture/PEERS.md").drop { !$0.hasPrefix("| tool |") }.prefix(while: isRow)
    #expect(shown.count > 2)
    #expect(Array(shown) == Array(written))
  }
}
