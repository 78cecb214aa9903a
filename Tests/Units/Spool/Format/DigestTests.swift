import Testing

@testable import Spool

/// Digests as jobs declare them, and what journal lines carry of them.
@Suite struct DigestTests {
  private static let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

  @Test(
    arguments: [
      ("sha256", sha256, sha256), ("sha256", sha256.uppercased(), sha256),
      ("sha256", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", sha256), ("sha256", "sha256:" + sha256, sha256),
      ("sha256", "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", sha256), ("sha256", "sha512:" + sha256, nil),
      ("sha256", "sha256", nil), ("sha256", "sha256:", nil), ("sha256", "sha256:sha256:\(sha256)", nil),
      // A name with such a mark of its own.
      ("sha3-256", "sha3-256:\(sha256)", sha256), ("sha256", "SHA-256:\(sha256)", sha256),
      ("sha3-256", "sha3-256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", sha256),
      ("blake2b", "BLAKE2b-512:\(sha256)\(sha256)", "\(sha256)\(sha256)"),
      ("sha1", "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", "a9993e364706816aba3e25717850c26c9cd0d89d"),
      ("md5", "kAFQmDzST7DWlj99KOF/cg==", "900150983cd24fb0d6963f7d28e17f72"),
      ("md5", "900150983CD24fb0d6963f7d28e17f72", "900150983cd24fb0d6963f7d28e17f72"),
      (
        "sha512", "3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
          + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
      ),
      // Of another length, another digest's, with other characters, without padding; a CRC-32 in base64.
      ("sha256", String(sha256.dropLast()), nil), ("sha256", sha256 + "0", nil), ("sha1", sha256, nil),
      ("md5", "900150983cd24fb0d6963f7d28e17f7g", nil), ("sha256", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0", nil),
      ("sha256", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qc BD/YfIAFa0=", nil), ("md5", "kAFQmDzST7DWlj99KOF/c===", nil),
      ("md5", "kAFQmDzST7DWlj99KOF_cg==", nil), ("crc32", "NSRBwg==", nil),
    ] as [(String, String, String?)])
  func declared(key: String, text: String, expected: String?) throws {
    let algorithm = try #require(DigestAlgorithm(rawValue: key))
    #expect(Digest(algorithm, text)?.description == expected)
  }

  @Test func aJobDeclaresSeveral() {
    let job = parsed("https://h/a\nmd5: kAFQmDzST7DWlj99KOF/cg==\nsha256: \(Self.sha256)\ndigests: sha512 md5 crc32\n")
    #expect(job.defect == nil)
    #expect(job.request.expected.digests.algorithms == [.md5, .sha256])
    #expect(job.request.computedDigests == [.crc32, .md5, .sha256, .sha512], "CRC-32 is computed anyway")
    #expect(
      job.request.text
        == "url: https://h/a\nsha256: \(Self.sha256)\nmd5: 900150983cd24fb0d6963f7d28e17f72\n"
        + "digests: crc32 sha512 md5\n")
    #expect(parsed("https://h/a\n").request.computedDigests == [.crc32])
    #expect(parsed("https://h/a\nmd5: 900150983cd24fb0d6963f7d28e17f72\nmd5: \(Self.sha256)\n").defect?.line == 3)
    #expect(parsed("https://h/a\ndigests: sha256 sha224\n").defect?.reason.contains("names of digests") == true)
  }

  @Test func defaultsOrderDigestsButDeclareNone() {
    let ordered = defaults("digests: sha256\n")
    #expect(ordered.defect == nil)
    #expect(parsed("https://h/a\n").request.inheriting(ordered.request).computedDigests == [.crc32, .sha256])
    #expect(
      parsed("https://h/a\ndigests: md5\n").request.inheriting(ordered.request).computedDigests == [.crc32, .md5])
    #expect(defaults("sha256: \(Self.sha256)\n").defect?.reason.contains("belongs to one job") == true)
  }

  @Test(arguments: ["sha-256", "SHA256", "sha224", "checksum"])
  func anUnknownDigestIsToldWhichThereAre(key: String) {
    let reason = parsed("https://h/a\n\(key): 00\n").defect?.reason ?? ""
    #expect(reason.contains("unknown key `\(key)`"))
    #expect(reason.contains("crc32, sha256, sha512, sha1, md5") == (key != "sha224"))
  }

  // MARK: in the journal

  private func marked(_ line: String) -> Mark? { parsed("https://h/a\n\(line)\n").journal.data.checkpoint }

  private func mark(_ bytes: [UInt8], _ algorithms: Set<DigestAlgorithm>) -> Mark {
    var states = DigestStates(algorithms)
    bytes.withUnsafeBytes { states.update($0) }
    return Mark(offset: UInt64(bytes.count), states: states)
  }

  @Test func aCheckpointCarriesTheStates() throws {
    let mark = mark(Array(repeating: 7, count: 1000), Set(DigestAlgorithm.allCases))
    let text = JournalLine.checkpoint(mark).text
    #expect(text.utf8.count < 2500)
    let read = try #require(marked(String(text.dropLast())))
    #expect(read == mark && read.states.algorithms == Set(DigestAlgorithm.allCases))
    #expect(read.digests == mark.digests)
    #expect(read.narrowed(to: [.md5])?.states.algorithms == [.crc32, .md5])
    #expect(read.narrowed(to: [.md5])?.digests[.crc32] == mark.digests[.crc32])
    #expect(read.narrowed(to: [])?.digests == mark.digests.only([.crc32]))
  }

  /// What cannot be read, or is of another version, is left out; the rest of the line counts.
  @Test func aStateThatCannotBeReadIsLeftOut() throws {
    let mark = mark(Array(repeating: 7, count: 100), [.sha256, .md5])
    let line = String(JournalLine.checkpoint(mark).text.dropLast())
    let other = try #require(marked(line.replacing("sha256/1", with: "sha256/2")))
    #expect(
      other.offset == 100 && other.digests[.crc32] == mark.digests[.crc32] && other.states.algorithms == [.crc32, .md5])
    #expect(other.narrowed(to: [.sha256]) == nil && other.narrowed(to: [.md5]) != nil)
    #expect(marked(line.replacing("checkpoint: 100", with: "checkpoint: 101"))?.states.algorithms == [.crc32])
    #expect(marked("checkpoint: 100 crc32=00000001 states=,:,/,x")?.states.algorithms == [.crc32])
  }
}
