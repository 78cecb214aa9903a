/// What is known of a payload before its bytes are: the size and the digests that it must have.
package struct Expectation: Sendable, Equatable {
  /// Bytes of the whole; nil for any size.
  package var size: UInt64?
  /// All of these have to agree.
  package var digests: Digests

  /// Without arguments, any payload will do.
  package init(size: UInt64? = nil, digests: Digests = Digests()) {
    self.size = size
    self.digests = digests
  }

  /// Whether a digest proves in the end that the bytes are right, wherever they come from.
  package var provesContent: Bool { !digests.isEmpty }

  /// Whether bytes of two mirrors may be joined: their validators cannot be compared, so only a digest shows a splice.
  package var mayJoinMirrors: Bool { provesContent }

  /// How a payload of `size` bytes differs; nil where it may be the right one.
  package func mismatch(size found: UInt64) -> Mismatch? {
    guard let size, size != found else { return nil }
    return Mismatch(property: .size, expected: "\(size)", found: "\(found)")
  }

  /// How the payload that ends at `found` differs; nil where it is the right one. A digest that was not computed counts
  /// as a mismatch.
  package func mismatch(_ found: Mark) -> Mismatch? {
    if let mismatch = mismatch(size: found.offset) { return mismatch }
    let computed = found.digests
    for digest in digests.all where computed[digest.algorithm] != digest {
      return Mismatch(
        property: .digest(digest.algorithm), expected: "\(digest)",
        found: computed[digest.algorithm].map { "\($0)" } ?? "nothing")
    }
    return nil
  }
}

/// In what a payload differs from what it must be.
package struct Mismatch: Sendable, Equatable {
  /// What differs.
  package enum Property: Sendable, Equatable {
    case size
    case digest(DigestAlgorithm)
  }

  /// What differs.
  package let property: Property
  /// What it should be, as records show it.
  package let expected: String
  /// What it is, as records show it.
  package let found: String

  /// `expected 5 bytes, found 6`.
  package var text: String {
    switch property {
    case .size: "expected \(expected) bytes, found \(found)"
    case .digest(let algorithm): "expected \(algorithm.rawValue) \(expected), found \(found)"
    }
  }
}
