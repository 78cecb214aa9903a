import Testing

@testable import Spool
@testable import SpoolWorker
@testable import Transfer

/// Which of the digests that a server states are computed and checked, and what they say of a version.
@Suite struct CheckedDigestTests {
  private static let abc256 = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
  private static let abc512 = "3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw=="
  private static let abcMD5 = "kAFQmDzST7DWlj99KOF/cg=="
  private static let otherMD5 = "1B2M2Y8AsgTpgAmY7PhCfg=="

  private func response(_ fields: [(String, String)], status: Int = 200) throws -> Response {
    Response(ResponseHead(status: status, fields: fields), from: try URLParts("http://h/f"), now: 0)
  }

  private func version(_ fields: (String, String)...) throws -> RemoteVersion {
    RemoteVersion(try response(fields), mirror: 1)
  }

  @Test func inHexadecimalDigits() throws {
    let stated = try version(
      ("repr-digest", "sha-256=:\(Self.abc256):, sha-512=:\(Self.abc512):"), ("content-md5", Self.abcMD5),
      ("x-amz-checksum-crc32", "NSRBwg==")
    ).stated
    #expect(stated[.sha256]?.description == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(stated[.md5]?.description == "900150983cd24fb0d6963f7d28e17f72")
    #expect(stated[.crc32]?.description == "352441C2")
    #expect(stated.algorithms == [.sha256, .sha512, .md5, .crc32])
    // Base64 that stands for fewer bytes than its length says.
    #expect(try version(("content-md5", "kAFQmDzST7DWlj99KOF/===="), ("digest", "md5=abc")).stated.isEmpty)
  }

  @Test func theStrongestAlone() throws {
    let all = try version(
      ("repr-digest", "sha-256=:\(Self.abc256):, sha-512=:\(Self.abc512):"), ("content-md5", Self.abcMD5),
      ("x-amz-checksum-crc32", "NSRBwg=="))
    var request = JobRequest()
    #expect(request.expected.checkedDigests(of: all).algorithms == [.sha512])
    #expect(request.computedDigests(for: all) == [.crc32, .sha512])
    request.digests = [.md5, .sha1]
    #expect(request.expected.checkedDigests(of: all).algorithms == [.sha512])
    #expect(request.computedDigests(for: all) == [.crc32, .sha512, .sha1, .md5])
    #expect(Expectation().checkedDigests(of: try version(("content-md5", Self.abcMD5))).algorithms == [.md5])
    #expect(Expectation().checkedDigests(of: nil).isEmpty)
    #expect(JobRequest().computedDigests(for: try version(("x-amz-checksum-crc32", "NSRBwg=="))) == [.crc32])
  }

  /// The job's word counts more than the server's.
  @Test func noneBesideADeclaredDigest() throws {
    var request = JobRequest()
    request.expected.digests = Digests(Digest(Checksum()))
    let all = try version(("content-md5", Self.abcMD5))
    #expect(request.expected.checkedDigests(of: all).isEmpty && request.computedDigests(for: all) == [.crc32])
  }

  @Test func inTheJournal() throws {
    var version = RemoteVersion(mirror: 1, size: 3, etag: "\"a\"", modified: nil)
    version.stated = try self.version(
      ("repr-digest", "sha-256=:\(Self.abc256):"), ("content-md5", Self.abcMD5), ("x-amz-checksum-crc32", "NSRBwg==")
    ).stated
    let line = JournalLine.response(version, at: 0, part: 7).text
    #expect(
      line.hasSuffix(
        " crc32=352441C2 sha256=\(version.stated[.sha256]?.description ?? "") md5=900150983cd24fb0d6963f7d28e17f72\n"))
    let journal = parsed("https://h/a\n\(line)").journal
    #expect(journal.data.version == version)
  }

  // MARK: in a part

  private func judge(_ fields: [(String, String)], _ version: RemoteVersion, declared: Digests = Digests()) throws
    -> ResponseVerdict
  {
    var request = JobRequest()
    request.expected.digests = declared
    let plan = ResumePlan.decide(length: 50, version: version, mirror: 1, hasDigest: !declared.isEmpty)
    let part = [("content-range", "bytes 50-99/100"), ("etag", "\"v1\"")]
    return ResponseVerdict.judge(
      try response(part + fields, status: 206),
      .init(try URLParts("http://h/f"), mirror: 1, plan: plan, version: version, request: request))
  }

  private func begun(_ fields: (String, String)...) throws -> RemoteVersion {
    var version = RemoteVersion(try response([("etag", "\"v1\"")] + fields), mirror: 1)
    version.size = 100
    return version
  }

  /// Known from then on, whichever response states it; what an earlier one stated stays.
  @Test func aPartAddsWhatItStates() throws {
    let joined = try judge([("digest", "md5=\(Self.abcMD5)")], begun(("digest", "sha-256=\(Self.abc256)"))).appended()
    #expect(joined.stated.algorithms == [.sha256, .md5])
    // Its own digest, not the file's.
    let same = try judge([("content-md5", Self.otherMD5)], begun(("content-md5", Self.abcMD5))).appended()
    #expect(same.stated[.md5] == Digest(.md5, base64: Self.abcMD5))
  }

  /// A declared digest lets another server continue the file. What the first one stated is not the second's word: it
  /// would count against what the second states later.
  @Test func aPartFromElsewhereTakesNothingOver() throws {
    var version = try begun(("content-md5", Self.abcMD5))
    for (place, stated) in [("http://h/f", Set([DigestAlgorithm.md5])), ("http://elsewhere/f", [])] {
      version.resource = Resource(place: place, query: nil as String?)
      let joined = try judge([], version, declared: Digests(Digest(Checksum()))).appended()
      #expect(joined.stated.algorithms == stated, "\(place)")
    }
  }

  /// Two versions under one ETag are never joined.
  @Test func aPartWithAnotherDigestIsOfAnotherVersion() throws {
    for declared in [Digests(), Digests(Digest(Checksum()))] {
      let verdict = try judge(
        [("digest", "md5=\(Self.otherMD5)")], begun(("content-md5", Self.abcMD5)), declared: declared)
      guard case .again(.startOver, let reason) = verdict else { throw Unexpected("\(verdict)") }
      #expect(reason.contains("digest"))
    }
  }
}
