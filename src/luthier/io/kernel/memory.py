"""Memory as classes of places that one pointer may reach: points-to analysis by unification (Steensgaard 1996)."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class StorageGraph:
    """Nodes represent storage: of a variable, a field of a record, or whatever a pointer points to.

    A node has at most one pointee; two pointers that are assigned to each other get the same one.
    """

    parent: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)  # the pointee's node, or -1
    records: list[set[str]] = field(default_factory=list)  # the types of the records stored here
    neighbours: list[set[str]] = field(default_factory=list)  # records of which this is a field with its address taken
    owners: list[set[str]] = field(default_factory=list)  # functions whose local storage this is; "" means any
    moved: list[bool] = field(default_factory=list)  # a pointer to it is used in arithmetic
    holds_pointers: list[bool] = field(default_factory=list)

    def new(self, owner: str = "") -> int:
        """A new node. The owner is a function, if only that function's local storage is here."""
        self.parent.append(len(self.parent))
        self.target.append(-1)
        self.records.append(set())
        self.neighbours.append(set())
        self.owners.append({owner})
        self.moved.append(False)
        self.holds_pointers.append(False)
        return len(self.parent) - 1

    def find(self, node: int) -> int:
        """The representative of the node's class."""
        root = node
        while self.parent[root] != root:
            root = self.parent[root]
        # Path compression (Tarjan 1975): the next search from these nodes takes one step.
        while self.parent[node] != root:
            self.parent[node], node = root, self.parent[node]
        return root

    def pointee(self, node: int) -> int:
        """What a pointer stored in this node points to."""
        root = self.find(node)
        if self.target[root] < 0:
            self.target[root] = self.new()
        return self.find(self.target[root])

    def unify(self, one: int, other: int) -> None:
        """Make both nodes one class, and what they point to as well."""
        # Steensgaard 1996, `join`, with a list instead of recursion: chains of pointees may be long.
        waiting = [(one, other)]
        while waiting:
            left, right = (self.find(node) for node in waiting.pop())
            if left == right:
                continue
            # The class with more record types absorbs the other, so that little is copied.
            if len(self.records[left]) < len(self.records[right]):
                left, right = right, left
            self.parent[right] = left
            self.records[left] |= self.records[right]
            self.neighbours[left] |= self.neighbours[right]
            self.owners[left] |= self.owners[right]
            self.moved[left] |= self.moved[right]
            self.holds_pointers[left] |= self.holds_pointers[right]
            if self.target[right] >= 0:
                if self.target[left] >= 0:
                    waiting.append((self.target[left], self.target[right]))
                else:
                    self.target[left] = self.target[right]
