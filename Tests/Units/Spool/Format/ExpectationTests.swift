import Testing

@testable import Spool

/// What a payload must be, and in what another one differs.
@Suite struct ExpectationTests {
  private let found = Mark(offset: 9, checksum: Checksum(value: 0xCBF4_3926))
  private let right = Digests(Digest(Checksum(value: 0xCBF4_3926)))

  @Test func theRightPayload() {
    for expected in [
      Expectation(), Expectation(size: 9), Expectation(digests: right), Expectation(size: 9, digests: right),
    ] {
      #expect(expected.mismatch(found) == nil)
    }
  }

  @Test func theWrongSizeIsToldFirst() {
    let expected = Expectation(size: 8, digests: Digests(Digest(Checksum(value: 1))))
    #expect(expected.mismatch(found) == Mismatch(property: .size, expected: "8", found: "9"))
    #expect(expected.mismatch(size: 9)?.text == "expected 8 bytes, found 9")
    let failure = Failure(Mismatch(property: .size, expected: "8", found: "9"))
    #expect(failure.code == .mismatchSize && failure.expected == "8" && failure.found == "9")
  }

  @Test func theWrongDigest() throws {
    let expected = Expectation(size: 9, digests: Digests(Digest(Checksum(value: 0xA1))))
    let mismatch = try #require(expected.mismatch(found))
    #expect(mismatch == Mismatch(property: .digest(.crc32), expected: "000000A1", found: "CBF43926"))
    #expect(mismatch.text == "expected crc32 000000A1, found CBF43926")
    #expect(Failure(mismatch).label == "mismatch-crc32")
  }

  /// One that was not computed counts as wrong.
  @Test func severalDigests() throws {
    var states = DigestStates([.sha256])
    Array("abc".utf8).withUnsafeBytes { states.update($0) }
    let found = Mark(offset: 3, states: states)
    let sha256 = try #require(
      Digest(.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"))
    let md5 = try #require(Digest(.md5, "900150983cd24fb0d6963f7d28e17f72"))
    #expect(Expectation(size: 3, digests: Digests(sha256)).mismatch(found) == nil)
    let mismatch = try #require(Expectation(digests: Digests(sha256, md5)).mismatch(found))
    #expect(mismatch.text == "expected md5 900150983cd24fb0d6963f7d28e17f72, found nothing")
    #expect(Failure(mismatch).label == "mismatch-md5" && Failure(mismatch).code.isMismatch)
    // Of several that differ, the strongest is told.
    let other = Expectation(digests: Digests(Digest(Checksum(value: 1)), md5, sha256))
    #expect(other.mismatch(Mark(offset: 0, states: DigestStates([.sha256])))?.property == .digest(.sha256))
  }

  @Test(arguments: DigestAlgorithm.allCases)
  func eachDigestHasItsFailure(algorithm: DigestAlgorithm) {
    let failure = Failure(Mismatch(property: .digest(algorithm), expected: "1", found: "2"))
    #expect(failure.label == "mismatch-\(algorithm.rawValue)" && failure.code.isMismatch)
    #expect(failure.reason.contains(algorithm.title) && failure.failureClass == .temporary)
  }

  /// A size alone shows no splice.
  @Test func onlyADigestLetsMirrorsBeJoined() {
    #expect(!Expectation(size: 9).provesContent && Expectation(digests: right).provesContent)
  }
}
