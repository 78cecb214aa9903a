/// Where the request after an answer that broke off begins: its last bytes come again, to be compared (INTERNALS.md,
/// invariant 5).
/// - Parameters:
///   - end: where it broke off.
///   - start: where it began.
package func resumePoint(after end: Int, from start: Int = 0) -> Int { end - min(64 << 10, (end - start + 1) / 2) }
