import FuzzProperties
import TestSupport
import Testing

/// What the fuzzer has found once holds from then on, on machines that don't fuzz.
@Suite struct CorpusTests {
  static let corpus = "\(SourceTree.root)/Tests/Fuzz/Corpus"

  @Test(arguments: FuzzTarget.allCases)
  func everyInput(_ target: FuzzTarget) throws {
    let directory = "\(Self.corpus)/\(target.rawValue)"
    let inputs = names(in: directory)
    try #require(!inputs.isEmpty, "no corpus in \(directory)")
    for input in inputs {
      let bytes = try readFile("\(directory)/\(input)")
      do throws(Violation) {
        try target.check(bytes)
      } catch {
        Issue.record("\(target.rawValue)/\(input): \(error)")
      }
    }
  }

  /// A directory of another name would be read by nobody.
  @Test func noOtherDirectories() {
    #expect(Set(names(in: Self.corpus)) == Set(FuzzTarget.allCases.map(\.rawValue)))
  }
}
