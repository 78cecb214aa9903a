import Testing

@testable import Transfer

/// What servers state of a file's digests, and of what they are.
@Suite struct StatedDigestTests {
  private func digests(_ fields: [String], status: Int = 200) throws -> [StatedDigest.Algorithm: String] {
    let head = ResponseHead(
      status: status,
      fields: fields.map { field in
        let colon = field.firstIndex(of: ":") ?? field.endIndex
        return (field[..<colon].lowercased(), trimmed(field[colon...].dropFirst()))
      })
    let response = Response(head, from: try URLParts("http://h/f"), now: 0)
    return Dictionary(uniqueKeysWithValues: response.digests.map { ($0.algorithm, $0.base64) })
  }

  private static let hello256 = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="
  private static let hello512 =
    "YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg=="
  /// Of bytes 10 to 18 of the file.
  private static let part256 = "jjcgBDWNAtbYUXI37CVG3gRuGOAjaaDRGpIUFsdyepQ="
  private static let md5 = "HUXZLQLMuI/KZ5KDcJPcOA=="
  private static let sha = "thvDyvhfIqlvFe+A9MYgxAfm1q5="

  // The values are those of RFC 9530, appendices A and B; RFC 3230, 4.3.2; RFC 1864; Google's and Amazon's manuals.
  @Test(
    arguments: [
      (["Repr-Digest: sha-256=:\(hello256):"], [.sha256: hello256]),
      (["Content-Digest: sha-256=:\(hello256):"], [.sha256: hello256]),
      (
        ["Repr-Digest: sha-256=:\(hello256):, sha-512=:\(hello512):"], [.sha256: hello256, .sha512: hello512]
      ),
      (["Repr-Digest:  sha-256=:\(hello256): ,\tsha-512=:\(hello512):;a=1"], [.sha256: hello256, .sha512: hello512]),
      (
        ["Repr-Digest: sha-256=:\(hello256):", "Repr-Digest: sha-512=:\(hello512):"],
        [.sha256: hello256, .sha512: hello512]
      ),
      (["Repr-Digest: unixsum=:MTQ2NDE=:, md5=:\(md5):, sha=:\(sha):"], [.md5: md5, .sha1: sha]),
      (["Digest: SHA=\(sha),unixsum=30637"], [.sha1: sha]),
      (["Digest: md5=\(md5),sha=\(sha)"], [.md5: md5, .sha1: sha]),
      (["Digest: SHA-256=\(hello256)", "Digest: sha-512=\(hello512)"], [.sha256: hello256, .sha512: hello512]),
      (["Content-MD5: Q2hlY2sgSW50ZWdyaXR5IQ=="], [.md5: "Q2hlY2sgSW50ZWdyaXR5IQ=="]),
      (
        ["x-goog-hash: crc32c=n03x6A==,md5=Ojk9c3dhfxgoKVVHYwFbHQ=="],
        [.md5: "Ojk9c3dhfxgoKVVHYwFbHQ==", .crc32c: "n03x6A=="]
      ),
      (["x-goog-hash: crc32c=n03x6A==", "x-goog-hash: md5=\(md5)"], [.md5: md5, .crc32c: "n03x6A=="]),
      (
        ["x-amz-checksum-crc64nvme: AAAAAAAAAAA=", "x-amz-checksum-type: FULL_OBJECT"], [.crc64nvme: "AAAAAAAAAAA="]
      ),
      (["x-goog-hash: md5=\(md5)", "x-goog-stored-content-encoding: identity"], [.md5: md5]),
      (["x-amz-checksum-crc32: NSRBwg=="], [.crc32: "NSRBwg=="]),
      (["x-amz-checksum-sha256: \(hello256)", "x-amz-checksum-type: FULL_OBJECT"], [.sha256: hello256]),
      (["x-amz-checksum-sha1: \(sha)", "x-amz-checksum-crc32c: n03x6A=="], [.sha1: sha, .crc32c: "n03x6A=="]),
      // Several that agree.
      (["Repr-Digest: sha-256=:\(hello256):", "Digest: SHA-256=\(hello256)"], [.sha256: hello256]),
      (["Content-Encoding: identity", "Content-MD5: \(md5)"], [.md5: md5]),
    ] as [([String], [StatedDigest.Algorithm: String])])
  func ofTheWhole(fields: [String], expected: [StatedDigest.Algorithm: String]) throws {
    #expect(try digests(fields) == expected)
  }

  @Test(arguments: [
    // An ETag is none, whatever it looks like.
    ["ETag: \"\(md5)\"", "ETag: \"44aff4ab2d7c3250525675a08f0cfa9591168cffe51791c5f5bbc417c15a6c38\""],
    // Of the encoded file.
    ["Repr-Digest: sha-256=:\(hello256):", "Content-MD5: \(md5)", "Content-Encoding: gzip"],
    ["x-goog-hash: md5=\(md5)", "x-goog-stored-content-encoding: gzip"],
    // Of the checksums of an upload's parts.
    ["x-amz-checksum-sha256: \(hello256)-2"], ["x-amz-checksum-sha256: \(hello256)", "x-amz-checksum-type: COMPOSITE"],
    ["x-amz-checksum-crc32: NSRBwg==-4", "x-amz-checksum-type: COMPOSITE"],
    // Contradictory.
    ["Repr-Digest: sha-256=:\(hello256):", "Digest: SHA-256=\(part256)"],
    ["Content-MD5: \(md5)", "Content-MD5: Q2hlY2sgSW50ZWdyaXR5IQ=="],
    // Malformed, as a whole: no byte sequence, a string, other characters, no key, an end that is none.
    ["Repr-Digest: sha-256=\(hello256)"], ["Repr-Digest: sha-256=:\(hello256):, sha-512=?1"],
    ["Repr-Digest: sha-256=:\(hello256):;a=\"b,c\""], ["Repr-Digest: sha-256=:\(hello256):, sha-512=\"x\""],
    ["Repr-Digest: SHA-256=:\(hello256):"], ["Repr-Digest: =:\(hello256):"], ["Repr-Digest: sha-256=:\(hello256):,"],
    ["Repr-Digest: sha-256=:\(hello256)"], ["Repr-Digest: ,sha-256=:\(hello256):"], ["Repr-Digest:"],
    ["Repr-Digest: sha-256=:\(hello256): sha-512=:\(hello512):"],
    // Of another length, or no base64.
    ["Repr-Digest: sha-256=:\(md5):"], ["Digest: sha-256=\(sha)"], ["Content-MD5: 1d45d92d02ccb88fca6792837093dc38"],
    ["Content-MD5: HUXZLQLMuI/KZ5KDcJPc*A=="], ["Digest: \(md5)"], ["Digest: =,,md5="],
    // By algorithms that are not known.
    ["Repr-Digest: crc32c=:n03x6A==:, adler=:A8gDmA==:"], ["x-amz-checksum-xxhash64: AAAAAAAAAAA="],
  ])
  func nothing(fields: [String]) throws { #expect(try digests(fields) == [:]) }

  @Test(arguments: [
    (206, "bytes 10-18/19", true, false), (206, "bytes 0-18/19", true, true), (206, "bytes 0-17/19", true, false),
    (206, "bytes 0-18/*", true, false), (206, "bytes 19-10/19", false, false), (416, "bytes */19", false, false),
    (404, "", false, false), (301, "", false, false),
  ])
  func ofAPart(status: Int, range: String, hasRepresentation: Bool, isWhole: Bool) throws {
    let range = ["Content-Range: \(range)"]
    let ofRepresentation = [
      "Repr-Digest: sha-256=:\(Self.hello256):", "Digest: sha-512=\(Self.hello512)", "x-goog-hash: md5=\(Self.md5)",
    ]
    let expected: [StatedDigest.Algorithm: String] = [
      .sha256: Self.hello256, .sha512: Self.hello512, .md5: Self.md5,
    ]
    #expect(try digests(range + ofRepresentation, status: status) == (hasRepresentation ? expected : [:]))
    let ofBody = [
      "Content-Digest: sha-256=:\(Self.part256):", "Content-MD5: \(Self.md5)", "x-amz-checksum-sha1: \(Self.sha)",
    ]
    let whole: [StatedDigest.Algorithm: String] = [.sha256: Self.part256, .md5: Self.md5, .sha1: Self.sha]
    #expect(try digests(range + ofBody, status: status) == (isWhole ? whole : [:]))
  }
}
