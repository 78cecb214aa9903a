import Testing

@testable import Spool

/// What a person's word that another URL leads to the same file is worth (`spoolrun url --same`).
@Suite struct VouchedVersionTests {
  private func version(_ etag: String?, _ modified: String?, at place: String) -> RemoteVersion {
    RemoteVersion(
      mirror: 1, size: 9, etag: etag, modified: modified, resource: Resource(place: place, query: Checksum?.none))
  }

  @Test(
    arguments: [
      ("\"1\"", nil, "\"1\"", nil, true), ("\"1\"", nil, "\"2\"", nil, false), ("\"1\"", nil, nil, nil, false),
      ("W/\"1\"", nil, "W/\"1\"", nil, false), (nil, "then", nil, "then", true), (nil, "then", nil, "now", false),
      // An ETag outranks the date, and there was none to compare it with.
      (nil, "then", "\"1\"", "then", false), (nil, nil, nil, nil, false),
    ] as [(String?, String?, String?, String?, Bool)])
  func `it needs the same strong validator`(
    etag: String?, modified: String?, otherTag: String?, otherDate: String?, isSame: Bool
  ) {
    var known = version(etag, modified, at: "https://h/a")
    let answer = version(otherTag, otherDate, at: "https://i/b")
    #expect(!known.isComparable(with: answer) && !known.dependsOnWord(with: answer), "without the word")
    known.isVouched = true
    #expect(known.isComparable(with: answer) == isSame)
    #expect(known.dependsOnWord(with: answer) && !known.dependsOnWord(with: version(etag, nil, at: "https://h/a")))
  }
}
