import TestSupport
import Testing

@Suite struct VersionTests {
  @Test func `the program has the version of the newest section of NEWS`() async throws {
    let section = try #require(try SourceTree.lines("NEWS.md").first { $0.hasPrefix("## ") })
    let version = try #require(section.split(separator: " ").dropFirst().first)
    let printed = try await runTool([productPath("spoolrun"), "--version"]).output
    #expect(printed == "\(version)\n")
    #expect(try await runTool(["\(SourceTree.root)/scripts/version"]).output.hasPrefix("\(version)"), "of packages")
  }
}
