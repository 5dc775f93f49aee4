// SPDX-License-Identifier: MIT
// Icons, as paths in a box of 24 by 24. Screen readers skip them and read the name of the button.
const PATHS = {
    menu: "M4 6h16M4 12h16M4 18h16",
    plus: "M12 5v14M5 12h14",
    close: "M6 6l12 12M18 6L6 18",
    send: "M12 19V5M6 11l6-6 6 6",
    stop: "M7 7h10v10H7z",
    edit: "M4 20h4L19 9l-4-4L4 16z",
    copy: "M9 9h11v11H9zM15 5H4v11",
    again: "M20 11a8 8 0 1 0-2.3 6.3M20 5v6h-6",
    forward: "M5 5l8 7-8 7zM18 5v14",
    trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
    left: "M14 6l-6 6 6 6",
    right: "M10 6l6 6-6 6",
    sliders: "M4 7h10M18 7h2M4 17h2M10 17h10M14 5v4M6 15v4",
    tokens: "M4 5h6v6H4zM14 5h6v6h-6zM4 15h6v4H4zM14 15h6v4h-6z",
    theme: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
    download: "M12 4v11M7 11l5 5 5-5M5 20h14",
    upload: "M12 16V5M7 9l5-5 5 5M5 20h14",
    tool: "M14 6a4 4 0 0 0-5 5l-5 5 3 3 5-5a4 4 0 0 0 5-5l-3 3-2-1-1-2z",
    attach: "M19 11l-7.5 7.5a4.2 4.2 0 0 1-6-6L13 5a2.8 2.8 0 0 1 4 4l-7.5 7.5a1.4 1.4 0 0 1-2-2L14 8",
    picture: "M4 5h16v14H4zM4 17l5-5 4 4 3-3 4 4M15 9h.01",
    file: "M6 3h8l4 4v14H6zM14 3v4h4",
    search: "M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15.5 15.5L20 20",
    book: "M5 4h6a2 2 0 0 1 1 2v14a2 2 0 0 0-1-1H5zM19 4h-6a2 2 0 0 0-1 2v14a2 2 0 0 1 1-1h6z",
};

export function Icon({ name }) {
    return (
        <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d={PATHS[name]} /></svg>
    );
}

// A button with an icon, and its name as a tooltip.
export function IconButton({ icon, label, class: extra = "", ...rest }) {
    return (
        <button type="button" class={`icon-button ${extra}`} aria-label={label} title={label} {...rest}>
            <Icon name={icon} />
        </button>
    );
}
