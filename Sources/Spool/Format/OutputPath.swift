/// The place of a payload below the output root: names joined by single slashes.
package struct OutputPath: Sendable, Hashable {
  /// The directories, from outside to inside.
  package let parents: [String]
  /// The last part.
  package let name: String

  /// The maximum number of names in a path. A worker keeps each directory of the path open until the payload's name is
  /// durable, and all its jobs share its descriptors.
  package static let maximumParts = 32

  package static func == (one: OutputPath, other: OutputPath) -> Bool { one.text.exact == other.text.exact }

  package func hash(into hasher: inout Hasher) { hasher.combine(text.exact) }

  /// All parts, with slashes between them.
  package var text: String { (parents + [name]).joined(separator: "/") }

  /// nil for what ``defect(of:)`` names.
  package init?(_ text: String) {
    guard Self.defect(of: text) == nil else { return nil }
    var components = Self.components(of: text)
    name = components.removeLast()
    parents = components
  }

  /// Whether a job's `output:` names the directory for the payload, and leaves the name to the URL.
  static func isDirectory(_ text: String) -> Bool { text.utf8.last == UInt8(ascii: "/") }

  /// Splits at bytes, as the kernel does. Swift's characters would hide a slash with a combining mark behind it, and so
  /// a `..` before it.
  private static func components(of text: String) -> [String] {
    text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { String(Substring($0)) }
  }

  /// Why `text` cannot be an output; nil when it can. Symbolic links are found only when it is opened.
  package static func defect(of text: String) -> String? {
    if text.isEmpty { return "is empty" }
    if text.utf8.first == UInt8(ascii: "/") { return "is absolute: it has to be relative to the output root" }
    if text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "contains control bytes" }
    if text.utf8.last == UInt8(ascii: "/") { return "names a directory: add the file's name" }
    // path_resolution(7): a path has at most PATH_MAX bytes, with the NUL.
    if text.utf8.count > 4000 { return "is too long" }
    let components = components(of: text)
    if components.count > maximumParts { return "has more than \(maximumParts) parts" }
    for component in components {
      if component.isEmpty { return "contains an empty name (//)" }
      if component == "." || component == ".." { return "contains `\(component)`: it may not leave the output root" }
      if component.utf8.count > 255 { return "contains a name of over 255 bytes" }
    }
    return nil
  }
}
