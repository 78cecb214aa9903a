import Testing

@Suite struct ExitStatusTableTests {
  @Test func `README and spoolrun(1) have the same exit codes, in the same words`() throws {
    let manual = try Manual("man/spoolrun.1")
    let explained = manual.items("EXIT STATUS").map { [$0.head[0], $0.firstSentence] }
    #expect(try Readme().table("code") == explained)
    #expect(explained.count == 9)
  }
}
